import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.Deflater;

/** Memory of each kind that a JVM's ledger has a row for. Prints "ready" and waits for the end of its input. */
public class RssTarget {
  private static final List<Object> kept = new ArrayList<>();

  public static void main(String[] arguments) throws Exception {
    for (int i = 0; i < 40; i++) kept.add(new Deflater());
    for (int i = 0; i < 20; i++) kept.add(ByteBuffer.allocateDirect(1 << 18));
    for (int i = 0; i < 12; i++) kept.add(new byte[1 << 20]);
    try (RandomAccessFile file = new RandomAccessFile(arguments[0], "rw")) {
      ByteBuffer mapped = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 8 << 20);
      for (int i = 0; i < 8 << 20; i += 4096) mapped.put(i, (byte) 1);
      kept.add(mapped);
    }
    for (int i = 0; i < 4; i++) {
      Thread thread = new Thread(RssTarget::waitForEver, "waiting-" + i);
      thread.setDaemon(true);
      thread.start();
    }
    Thread ended = new Thread(() -> {}, "ended");
    ended.start();
    ended.join();
    System.out.println("ready");
    while (System.in.read() >= 0) continue;
  }

  private static synchronized void waitForEver() {
    try {
      while (true) RssTarget.class.wait();
    } catch (InterruptedException ended) {
    }
  }
}
