package com.acme.stress;

/** Loaded again and again, each time by a loader of its own. */
public final class Plugin {
  private Plugin() {}

  public static int work(int n) {
    Stress.allocate(100);
    Runnable inner = () -> Stress.allocate(50);
    inner.run();
    return n <= 0 ? 0 : work(n - 1) + 1;
  }
}
