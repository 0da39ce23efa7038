package com.acme.shop;

import com.acme.billing.pdf.InvoicePdf;
import com.acme.pricing.PriceTables;
import com.acme.search.Index;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.LongFunction;
import org.geotiles.TileCache;

/**
 * A web shop in miniature: a JVM whose memory is mostly native, held by Java packages and JNI libraries of three owners.
 *
 * <p>Each module works in a thread of its own. At the end it prints what each one holds by its own account, one line each: {@code
 * TRUTH module=billing at_least=N at_most=M}. Where a module can count to the byte the two are the same.
 */
public final class Shop {
  private static final long MIB = 1 << 20;

  private Shop() {}

  public static void main(String[] arguments) throws InterruptedException {
    List<String> lines = Collections.synchronizedList(new ArrayList<>());
    List<Thread> threads = new ArrayList<>();
    threads.add(start("invoice-archive", "billing", InvoicePdf::archive, 96 * MIB, lines));
    threads.add(start("index-builder", "search", Index::build, 48 * MIB, lines));
    threads.add(start("price-loader", "pricing", PriceTables::load, 24 * MIB, lines));
    threads.add(start("tile-reader", "geotiles", TileCache::warmUp, 12 * MIB, lines));
    for (Thread thread : threads) thread.join();
    Collections.sort(lines);
    lines.forEach(System.out::println);
  }

  private static Thread start(String name, String module, LongFunction<long[]> work, long bytes, List<String> lines) {
    Runnable task =
        () -> {
          long[] held = work.apply(bytes);
          lines.add("TRUTH module=" + module + " at_least=" + held[0] + " at_most=" + held[1]);
        };
    Thread thread = new Thread(task, name);
    thread.start();
    return thread;
  }
}
