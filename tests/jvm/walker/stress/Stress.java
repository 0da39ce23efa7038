package com.acme.stress;

import java.io.InputStream;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.function.IntUnaryOperator;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/**
 * Everything that makes a Java stack hard to walk, at once: collections, classes that come and go, deoptimisation, exceptions, deep
 * recursion, lambdas, method handles, reflection, proxies, short threads, native code that calls Java again. Each of them allocates native
 * memory somewhere below.
 *
 * <p>Arguments: seconds after each thread's first round (with -Xcomp everything is compiled in that one, for a minute or more), threads,
 * then words that switch things on: "oome" and "overflow" also throw those errors all the time, "virtual" also runs virtual threads (where
 * there are some), "exit", "halt" and "return" (the default) say how to end.
 */
public final class Stress {
  private static volatile boolean stop;
  private static volatile Object sink;
  private static boolean oome, overflow;
  private static byte[] pluginBytes;
  private static CountDownLatch warm;

  private Stress() {}

  /** Calls back {@code Stress.called} from native code, which allocates before and after. */
  static native int callJava(int depth);

  public static native void allocate(int bytes);

  static int called(int depth) {
    allocate(64);
    return depth <= 0 ? 0 : callJava(depth - 1) + 1;
  }

  interface Shape {
    int area(int n);
  }

  static final class Square implements Shape {
    public int area(int n) {
      allocate(16);
      return n * n;
    }
  }

  static final class Circle implements Shape {
    public int area(int n) {
      allocate(16);
      return 3 * n * n;
    }
  }

  static final class Line implements Shape {
    public int area(int n) {
      allocate(16);
      return 0;
    }
  }

  /** Compiled for the shapes seen so far; a new one makes the compiled code invalid. */
  static int total(Shape[] shapes, int n) {
    int sum = 0;
    for (Shape shape : shapes) sum += shape.area(n);
    return sum;
  }

  static void deoptimise(Random random) {
    Shape[] shapes = new Shape[8];
    for (int i = 0; i < shapes.length; i++) {
      int which = random.nextInt(100);
      shapes[i] = which < 97 ? new Square() : which < 99 ? new Circle() : new Line();
    }
    sink = total(shapes, random.nextInt(10));
  }

  static void deflate(Random random) {
    byte[] data = new byte[100 + random.nextInt(1000)];
    random.nextBytes(data);
    Deflater deflater = new Deflater(random.nextInt(9) + 1);
    Inflater inflater = new Inflater();
    try {
      deflater.setInput(data);
      deflater.finish();
      byte[] out = new byte[2000];
      inflater.setInput(out, 0, deflater.deflate(out));
      inflater.inflate(new byte[2000]);
    } catch (java.util.zip.DataFormatException e) {
      throw new IllegalStateException(e);
    } finally {
      deflater.end();
      inflater.end();
    }
  }

  static int recurse(int depth, Random random) {
    if (depth == 0) {
      allocate(32);
      return random.nextInt();
    }
    return recurse(depth - 1, random) + 1;
  }

  static void thrower(int depth) {
    allocate(8);
    if (depth == 0) throw new IllegalArgumentException("as planned");
    try {
      thrower(depth - 1);
    } finally {
      allocate(8);
    }
  }

  static void exceptions(Random random) {
    try {
      thrower(random.nextInt(10));
    } catch (IllegalArgumentException e) {
      sink = e;
    }
    try {
      sink = new int[3][random.nextInt(8) - 4];
    } catch (NegativeArraySizeException e) {
      sink = e.getStackTrace();
    }
    try {
      Object[] strings = new String[1];
      strings[random.nextInt(2)] = random.nextBoolean() ? "text" : (Object) 1;
    } catch (ArrayStoreException | ArrayIndexOutOfBoundsException e) {
      sink = e;
    }
  }

  static void handles(Random random) throws Throwable {
    MethodHandles.Lookup lookup = MethodHandles.lookup();
    MethodHandle handle = lookup.findStatic(Stress.class, "called", MethodType.methodType(int.class, int.class));
    int bound = random.nextInt(3);
    MethodHandle inserted = MethodHandles.insertArguments(handle, 0, bound);
    sink = (int) inserted.invokeExact();
    MethodHandle spread = handle.asSpreader(Object[].class, 1);
    sink = spread.invoke(new Object[] {bound});
    Method method = Stress.class.getDeclaredMethod("called", int.class);
    sink = method.invoke(null, bound);
    Shape proxy =
        (Shape)
            Proxy.newProxyInstance(
                Stress.class.getClassLoader(),
                new Class<?>[] {Shape.class},
                (self, called, arguments) -> {
                  allocate(24);
                  return (Integer) arguments[0] + 1;
                });
    sink = proxy.area(bound);
  }

  static void lambdas(Random random) {
    List<IntUnaryOperator> chain = new ArrayList<>();
    for (int i = 0; i < 5; i++) {
      int add = random.nextInt(5);
      chain.add(
          x -> {
            allocate(8);
            return x + add;
          });
    }
    int value = 1;
    for (IntUnaryOperator each : chain) value = each.andThen(x -> x * 2).applyAsInt(value);
    sink = value;
    sink = random.ints(20).boxed().map(Integer::toHexString).reduce("", String::concat);
  }

  /** A loader for each copy of the class; both die with the next collection. */
  static final class PluginLoader extends ClassLoader {
    PluginLoader() {
      super(Stress.class.getClassLoader());
    }

    Class<?> define() {
      return defineClass("com.acme.stress.Plugin", pluginBytes, 0, pluginBytes.length);
    }
  }

  static void classes() throws Exception {
    Class<?> plugin = new PluginLoader().define();
    sink = plugin.getMethod("work", int.class).invoke(null, 3);
  }

  static void buffers(Random random) {
    ByteBuffer buffer = ByteBuffer.allocateDirect(100 + random.nextInt(10000));
    buffer.put((byte) 1);
    sink = buffer;
  }

  static void garbage(Random random) {
    List<byte[]> list = new ArrayList<>();
    for (int i = 0; i < 50; i++) list.add(new byte[random.nextInt(20000)]);
    sink = list;
  }

  static int endless(int n) {
    return endless(n + 1) + 1;
  }

  static void errors() {
    if (overflow) {
      try {
        sink = endless(0);
      } catch (StackOverflowError e) {
        allocate(8);
      }
    }
    if (oome) {
      try {
        List<long[]> list = new ArrayList<>();
        for (; ; ) list.add(new long[8 << 20]);
      } catch (OutOfMemoryError e) {
        allocate(8);
      }
    }
  }

  static void churn(Random random) throws InterruptedException {
    Thread thread = new Thread(() -> deflate(new Random(1)), "churn-" + random.nextInt(1000));
    thread.start();
    thread.join();
  }

  static void round(Random random, int round) throws Throwable {
    deoptimise(random);
    deflate(random);
    sink = recurse(random.nextInt(120), random);
    exceptions(random);
    lambdas(random);
    sink = callJava(random.nextInt(6));
    if (round % 3 == 0) handles(random);
    if (round % 5 == 0) classes();
    if (round % 7 == 0) churn(random);
    if (round % 4 == 0) buffers(random);
    garbage(random);
    if (round % 200 == 0) System.gc();
    if (round % 100 == 50) errors();
  }

  private static long run(long seed) {
    Random random = new Random(seed);
    long rounds = 0;
    try {
      do {
        round(random, (int) rounds++);
        if (rounds == 1) warm.countDown();
      } while (!stop);
    } catch (Throwable e) {
      e.printStackTrace();
      Runtime.getRuntime().halt(70);
    }
    return rounds;
  }

  /** By reflection: compiled for releases that have none. */
  private static Thread startVirtual(Runnable work) throws Exception {
    return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
  }

  /** Waits far down: the stack is put back piece by piece, and each piece allocates. */
  static int waitBelow(int depth, Random random) throws InterruptedException {
    allocate(8);
    if (depth == 0) {
      Thread.sleep(1);
      garbage(random);
      return 1;
    }
    int sum = depth % 5 == 0 ? waitAndAdd(depth, random, 1, 2, 3, 4, 5, 6, 7, 8) : waitBelow(depth - 1, random);
    allocate(8);
    if (random.nextInt(40) == 0) Thread.yield();
    return sum + called(random.nextInt(2));
  }

  /** More arguments than registers. */
  static int waitAndAdd(int depth, Random random, long a, long b, long c, long d, long e, long f, long g, long h)
      throws InterruptedException {
    int sum = waitBelow(depth - 1, random);
    allocate(8);
    return sum + (int) (a + b + c + d + e + f + g + h);
  }

  private static void virtualThreads() throws Exception {
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      int seed = i;
      threads.add(
          startVirtual(
              () -> {
                Random random = new Random(seed);
                try {
                  while (!stop) {
                    deflate(random);
                    sink = recurse(10, random);
                    Thread.sleep(1);
                    deflate(random);
                    sink = waitBelow(random.nextInt(100), random);
                    sink = callJava(2);
                  }
                } catch (InterruptedException e) {
                  throw new IllegalStateException(e);
                }
              }));
    }
    for (Thread thread : threads) thread.join();
  }

  public static void main(String[] arguments) throws Exception {
    System.loadLibrary("stress");
    try (InputStream stream = Stress.class.getResourceAsStream("Plugin.class")) {
      pluginBytes = stream.readAllBytes();
    }
    double seconds = Double.parseDouble(arguments[0]);
    int count = Integer.parseInt(arguments[1]);
    List<String> words = List.of(arguments).subList(2, arguments.length);
    oome = words.contains("oome");
    overflow = words.contains("overflow");
    System.out.println("started");
    System.out.flush();
    long[] rounds = new long[count];
    warm = new CountDownLatch(count);
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      int number = i;
      Thread thread = new Thread(() -> rounds[number] = run(number), "stress-" + i);
      thread.start();
      threads.add(thread);
    }
    Thread timer =
        new Thread(
            () -> {
              try {
                warm.await();
                Thread.sleep((long) (seconds * 1000));
              } catch (InterruptedException e) {
                throw new IllegalStateException(e);
              }
              stop = true;
            },
            "timer");
    timer.start();
    if (words.contains("virtual")) virtualThreads();
    for (Thread thread : threads) thread.join();
    long sum = 0;
    for (long each : rounds) sum += each;
    System.out.println("rounds " + (sum > 0 ? "done" : "none"));
    System.out.flush();
    if (words.contains("exit")) System.exit(3);
    if (words.contains("halt")) Runtime.getRuntime().halt(4);
    if (words.contains("wait")) Thread.sleep(60000);
  }
}
