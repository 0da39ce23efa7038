package org.shop.server;

/** What a service holds in native memory and will never give back, as it counts itself. */
public final class Held {
  private final String line;

  private Held(String line) {
    this.line = line;
  }

  /** To the byte: every block's size is known. */
  public static Held bytes(long bytes) {
    return new Held("live_bytes=" + bytes);
  }

  /** So many objects, whose size only the library below knows. */
  public static Held objects(long objects) {
    return new Held("objects=" + objects);
  }

  @Override
  public String toString() {
    return line;
  }
}
