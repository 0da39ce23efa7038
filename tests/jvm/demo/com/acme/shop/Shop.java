package com.acme.shop;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * A web shop in miniature: a JVM whose memory is mostly native, held by a JNI library with modules of two teams.
 *
 * <p>Each module works in a thread of its own, in many small steps. At the end it prints what each one holds, counted by the
 * library itself to the byte, one line each: {@code TRUTH module=billing live_bytes=N blocks=M}. The argument is a scale: 1 holds
 * 180 MiB.
 */
public final class Shop {
  private interface Work {
    long[] hold(long goal);
  }

  private static final int STEPS = 64;
  private static final long MIB = 1 << 20;

  static native long[] renderInvoices(long goal);

  static native long[] loadTables(long goal);

  static native long[] buildIndex(long goal);

  static native long[] loadVendorData(long goal);

  private Shop() {}

  public static void main(String[] arguments) throws InterruptedException {
    double scale = arguments.length > 0 ? Double.parseDouble(arguments[0]) : 1;
    System.loadLibrary("demo_native");
    List<String> lines = Collections.synchronizedList(new ArrayList<>());
    List<Thread> threads = new ArrayList<>();
    threads.add(start("billing", Shop::renderInvoices, (long) (96 * MIB * scale), lines));
    threads.add(start("search", Shop::buildIndex, (long) (48 * MIB * scale), lines));
    threads.add(start("pricing", Shop::loadTables, (long) (24 * MIB * scale), lines));
    threads.add(start("vendor", Shop::loadVendorData, (long) (12 * MIB * scale), lines));
    for (Thread thread : threads) thread.join();
    Collections.sort(lines);
    lines.forEach(System.out::println);
  }

  private static Thread start(String module, Work work, long bytes, List<String> lines) {
    Thread thread =
        new Thread(
            () -> {
              long[] held = null;
              for (int step = 0; step < STEPS; step++) held = work.hold(bytes * (step + 1) / STEPS);
              lines.add("TRUTH module=" + module + " live_bytes=" + held[0] + " blocks=" + held[1]);
            },
            module);
    thread.start();
    return thread;
  }
}
