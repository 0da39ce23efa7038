import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import java.util.zip.Deflater;

/**
 * Native memory that nobody gives back: deflaters without end(), direct buffers that are dropped. Some are found by the collector, more than
 * 32 MiB of each stay; beside them as much whose owner calls end(). Prints "ready" when the collector has found what it can, and waits.
 */
final class CollectedTarget {
  private static final ReferenceQueue<Object> FOUND = new ReferenceQueue<>();

  static final class Archive {
    static Deflater open() {
      Deflater deflater = new Deflater();
      deflater.setInput(new byte[100]);
      deflater.deflate(new byte[1000]);
      return deflater;
    }
  }

  static final class Index {
    static ByteBuffer open() {
      return ByteBuffer.allocateDirect(1 << 20).put(0, (byte) 1);
    }
  }

  static final class Tidy {
    static Deflater open() {
      Deflater deflater = new Deflater();
      deflater.setInput(new byte[10]);
      deflater.deflate(new byte[1000]);
      return deflater;
    }
  }

  private static void drop(int count, Supplier<Object> open) throws InterruptedException {
    List<PhantomReference<Object>> dropped = new ArrayList<>();
    for (int i = 0; i < count; i++) dropped.add(new PhantomReference<>(open.get(), FOUND));
    for (int i = 0; i < count; ) {
      System.gc();
      while (FOUND.remove(100) != null) i++;
    }
  }

  public static void main(String[] arguments) throws Exception {
    drop(30, Archive::open);
    drop(30, Index::open);
    List<Object> kept = new ArrayList<>();
    for (int i = 0; i < 30; i++) Tidy.open().end();
    for (int i = 0; i < 160; i++) {
      kept.add(Archive.open());
      kept.add(Tidy.open());
    }
    for (int i = 0; i < 40; i++) kept.add(Index.open());
    System.out.println("ready");
    while (System.in.read() >= 0) continue;
    if (kept.isEmpty()) throw new IllegalStateException();
  }
}
