package com.acme.billing.pdf;

import java.util.ArrayList;
import java.util.List;
import java.util.zip.Deflater;

/**
 * Invoices as compressed PDF pages. The leak of the demo: {@link #compress} forgets that a Deflater is closed by hand, and each
 * one keeps a quarter of a MiB in zlib, which no heap dump shows.
 */
public final class InvoicePdf {
  // What zlib says of itself (zconf.h) for the parameters that Java uses, windowBits 15 and memLevel 8, "plus a few kilobytes for
  // small objects".
  private static final long ZLIB_BYTES = (1L << (15 + 2)) + (1L << (8 + 9));
  private static final long SMALL_OBJECTS = 8 << 10;

  private static final List<Deflater> unclosed = new ArrayList<>();

  private InvoicePdf() {}

  /** Makes invoices until zlib holds {@code goal} bytes for them. Returns how much that is: {at least, at most}. */
  public static long[] archive(long goal) {
    byte[] page = new byte[4096];
    byte[] compressed = new byte[2 * page.length];
    while (unclosed.size() * ZLIB_BYTES < goal) {
      for (int i = 0; i < page.length; i++) page[i] = (byte) (i * unclosed.size());
      preview(page, compressed);
      compress(page, compressed);
    }
    return new long[] {unclosed.size() * ZLIB_BYTES, unclosed.size() * (ZLIB_BYTES + SMALL_OBJECTS)};
  }

  private static int preview(byte[] page, byte[] compressed) {
    Deflater deflater = new Deflater(Deflater.BEST_SPEED);
    try {
      return deflate(deflater, page, compressed);
    } finally {
      deflater.end();
    }
  }

  private static int compress(byte[] page, byte[] compressed) {
    Deflater deflater = new Deflater(Deflater.BEST_COMPRESSION);
    unclosed.add(deflater); // and so it is not collected, as in a session, a pool or a cache
    return deflate(deflater, page, compressed);
  }

  private static int deflate(Deflater deflater, byte[] page, byte[] compressed) {
    deflater.setInput(page);
    deflater.finish();
    return deflater.deflate(compressed);
  }
}
