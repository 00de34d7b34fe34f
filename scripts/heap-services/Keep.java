import java.util.ArrayList;
import java.util.List;

/** 150 MB of objects on the Java heap. */
class Keep {
    public static void main(String[] arguments) throws InterruptedException {
        List<byte[]> kept = new ArrayList<>();
        for (int i = 0; i < 150_000; i++) kept.add(new byte[1000]);
        System.out.println("ready");
        Thread.sleep(Long.MAX_VALUE);
        System.out.println(kept.size());
    }
}
