package com.acme.stress;

/** A stack of given depth in Java and in native code, again and again: for measuring what a capture costs. */
public final class Depth {
  private Depth() {}

  static native int descend(int depth);

  static int java(int depth, int nativeDepth) {
    return depth == 0 ? descend(nativeDepth) : java(depth - 1, nativeDepth) + 1;
  }

  /** Arguments: calls, Java frames, native frames. */
  public static void main(String[] arguments) {
    System.loadLibrary("stress");
    int calls = Integer.parseInt(arguments[0]);
    int sum = 0;
    for (int i = 0; i < calls; i++) sum += java(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
    System.out.println("done " + (sum != 0));
  }
}
