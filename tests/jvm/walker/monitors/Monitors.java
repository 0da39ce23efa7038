// Virtual threads that wait for a monitor while the JVM allocates for that: what has to be seen is who wanted the monitor.
// Virtual threads are called by reflection, so that JDK 11's compiler can make this.
import java.util.ArrayList;
import java.util.List;

public final class Monitors {
  private static final Object LOCK = new Object();
  private static long count;

  private static void wantsTheMonitor() {
    synchronized (LOCK) {
      count++;
      if (count % 3 == 0) {
        try {
          Thread.sleep(0, 10_000);
        } catch (InterruptedException exception) {
          throw new IllegalStateException(exception);
        }
      }
    }
  }

  private static void deep(int depth, int times) {
    if (depth > 0) {
      deep(depth - 1, times);
      return;
    }
    for (int i = 0; i < times; i++) {
      wantsTheMonitor();
      Thread.yield();
    }
  }

  public static void main(String[] arguments) throws Exception {
    for (int i = 0; i < 20_000; i++) deep(3, 0);  // so that the compilers have it early
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 60; i++) {
      Runnable work = () -> deep(5, 40);
      threads.add((Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work));
    }
    for (Thread thread : threads) thread.join();
    System.out.println("count " + count);
  }
}
