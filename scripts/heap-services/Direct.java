import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** 200 direct buffers of 1 MiB: malloc's, outside of the Java heap. */
class Direct {
    public static void main(String[] arguments) throws InterruptedException {
        List<ByteBuffer> kept = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            ByteBuffer buffer = ByteBuffer.allocateDirect(1 << 20);
            while (buffer.hasRemaining()) buffer.put((byte) 1);
            kept.add(buffer);
        }
        System.out.println("ready");
        Thread.sleep(Long.MAX_VALUE);
        System.out.println(kept.size());
    }
}
