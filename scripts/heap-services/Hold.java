import java.util.ArrayList;
import java.util.List;

/** 50 MB on the JVM's heap, in pieces of 100 bytes to 4 KB. */
class Hold {
    static byte[] piece(int i) {
        return new byte[100 + (i * 37 & 0x7fffffff) % 4000];
    }

    public static void main(String[] arguments) throws InterruptedException {
        List<byte[]> kept = new ArrayList<>();
        for (int bytes = 0, i = 0; bytes < 50_000_000; i++) {
            kept.add(piece(i));
            bytes += kept.get(i).length;
        }
        System.out.println("ready");
        for (int i = 0; arguments.length > 0; i++) kept.set((i & 0x7fffffff) % kept.size(), piece(i));
        Thread.sleep(Long.MAX_VALUE);
    }
}
