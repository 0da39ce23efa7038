import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.Deflater;

/** Native memory without a pause on two threads, until standard input ends; then a SIGBUS of the JVM's own: a mapped file that lost its end. */
public class Busy {
  static volatile boolean isOver;

  static void work() {
    byte[] in = new byte[10_000], out = new byte[20_000];
    while (!isOver) {
      Deflater deflater = new Deflater();
      deflater.setInput(in);
      deflater.finish();
      deflater.deflate(out);
      deflater.end();
      ByteBuffer.allocateDirect(100);
    }
  }

  public static void main(String[] arguments) throws Exception {
    Thread[] threads = {new Thread(Busy::work), new Thread(Busy::work)};
    for (Thread thread : threads) thread.start();
    System.out.println("busy");
    while (System.in.read() >= 0) { }
    isOver = true;
    for (Thread thread : threads) thread.join();
    Path path = Files.createTempFile("busy", "");
    try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
      file.setLength(8192);
      MappedByteBuffer mapped = file.getChannel().map(MapMode.READ_WRITE, 0, 8192);
      file.setLength(0);
      mapped.get(5000);
      System.out.println("read");
    } catch (InternalError error) {
      System.out.println("the JVM's own");
    } finally {
      Files.delete(path);
    }
  }
}
