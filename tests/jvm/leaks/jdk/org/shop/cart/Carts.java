package org.shop.cart;

import java.util.zip.DataFormatException;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/** Innocent: it uses much native memory for a moment, often, and gives all of it back. */
public final class Carts implements Runnable {
  private static final int ROUNDS = 100;

  @Override
  public void run() {
    byte[] cart = new byte[20_000];
    byte[] packed = new byte[30_000];
    for (int round = 0; round < ROUNDS; round++) {
      Deflater deflater = new Deflater();
      deflater.setInput(cart);
      deflater.finish();
      int length = deflater.deflate(packed);
      deflater.end();
      Inflater inflater = new Inflater();
      inflater.setInput(packed, 0, length);
      try {
        inflater.inflate(cart);
      } catch (DataFormatException error) {
        throw new IllegalStateException(error);
      } finally {
        inflater.end();
      }
    }
  }
}
