package net.courier.sorting;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.shop.server.Held;
import org.shop.server.Service;

/** Java called back by C: qsort's comparison keeps a direct buffer each time. C frames lie between two runs of Java frames. */
public final class Sorter implements Service {
  private static final int PARCELS = 100;
  private static final int NOTE_BYTES = 12_000;
  private static final List<ByteBuffer> notes = new ArrayList<>();

  static int compare(MemorySegment left, MemorySegment right) {
    notes.add(ByteBuffer.allocateDirect(NOTE_BYTES));
    return Integer.compare(left.get(ValueLayout.JAVA_INT, 0), right.get(ValueLayout.JAVA_INT, 0));
  }

  @Override
  public Held serve() throws Throwable {
    var pointer = ValueLayout.ADDRESS.withTargetLayout(ValueLayout.JAVA_INT);
    Linker linker = Linker.nativeLinker();
    MethodHandle qsort =
        linker.downcallHandle(
            linker.defaultLookup().find("qsort").orElseThrow(),
            FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.ADDRESS));
    MethodHandle compare =
        MethodHandles.lookup()
            .findStatic(Sorter.class, "compare", MethodType.methodType(int.class, MemorySegment.class, MemorySegment.class));
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment parcels = arena.allocate(ValueLayout.JAVA_INT, PARCELS);
      for (int parcel = 0; parcel < PARCELS; parcel++) parcels.setAtIndex(ValueLayout.JAVA_INT, parcel, parcel * 7919 % 997);
      MemorySegment stub = linker.upcallStub(compare, FunctionDescriptor.of(ValueLayout.JAVA_INT, pointer, pointer), arena);
      qsort.invokeExact(parcels, (long) PARCELS, ValueLayout.JAVA_INT.byteSize(), stub);
    }
    return Held.bytes((long) notes.size() * NOTE_BYTES);
  }
}
