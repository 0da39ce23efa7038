// A virtual thread that waits twenty times and allocates after each, and a platform thread with a long name.
import java.util.concurrent.*;
import java.util.zip.Deflater;

public class Waiting {
  static final SynchronousQueue<Integer> queue = new SynchronousQueue<>();
  static final ConcurrentLinkedQueue<Deflater> kept = new ConcurrentLinkedQueue<>();
  static void afterAWait() throws Exception {
    for (int i = 0; i < 20; i++) {
      queue.take();
      kept.add(new Deflater(i % 10));
    }
  }
  static void whole() throws Exception { afterAWait(); }
  public static void main(String[] arguments) throws Exception {
    Thread virtual = Thread.ofVirtual().start(() -> { try { whole(); } catch (Exception e) { throw new RuntimeException(e); } });
    for (int i = 0; i < 20; i++) queue.put(i);
    virtual.join();
    Thread named = new Thread(() -> { for (int i = 0; i < 20; i++) kept.add(new Deflater(i % 10)); },
                              "a thread with a name of more than fifteen characters");
    named.start();
    named.join();
    System.out.println(kept.size());
  }
}
