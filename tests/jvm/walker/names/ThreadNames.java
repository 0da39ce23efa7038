import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.zip.Deflater;

/**
 * Threads with names of every kind. Each says what it is called, with its kernel thread id, and allocates native memory under that name:
 * "NAME tid name", in ASCII with escapes as in Java. Arguments: how many threads to start in all beside the fixed ones, and how many of
 * them to have at a time.
 */
public final class ThreadNames {
    private static final StringBuffer SAID = new StringBuffer();
    private static volatile Object garbage;
    private static volatile boolean done;

    private ThreadNames() {}

    public static void main(String[] arguments) throws Exception {
        final int threads = Integer.parseInt(arguments[0]), atATime = Integer.parseInt(arguments[1]);
        work();
        List<Thread> all = new ArrayList<>();
        for (String name : List.of("http-nio-8080-exec-12", "exactly-15-long", "exactly-16-long-", "short", "a name with  spaces and : # %",
                "Gr\u00f6\u00dfen\u00e4nderungspr\u00fcfer-3", "\u043e\u0431\u0440\u0430\u0431\u043e\u0442\u0447\u0438\u043a-17",
                "\u6ce8\u6587\u51e6\u7406\u30b9\u30ec\u30c3\u30c9-4", "rocket-\ud83d\ude80-launcher-\ud83d\ude80-9", "\ud83d\ude80",
                "ends in half a pair \ud83d", "x".repeat(160))) {
            all.add(new Thread(ThreadNames::work, name));
        }
        all.add(new Thread(ThreadNames::rename, "before-it-renames-itself-1"));
        all.add(new Thread(ThreadNames::work));
        all.add(new Subclass());
        for (Thread thread : all) thread.start();
        for (Thread thread : all) thread.join();
        workInVirtualThreads();

        Thread collector = new Thread(ThreadNames::collect, "makes-garbage-all-the-time");
        collector.start();
        for (int first = 0; first < threads; first += atATime) {
            all.clear();
            CountDownLatch started = new CountDownLatch(Math.min(atATime, threads - first));
            for (int i = first; i < Math.min(first + atATime, threads); i++) {
                Thread thread = new Thread(() -> {
                    started.countDown();
                    work();
                }, "one-of-many-workers-of-pool-" + i % 7 + "-thread-" + i);
                all.add(thread);
            }
            for (Thread thread : all) thread.start();
            started.await();
            for (Thread thread : all) thread.join();
        }
        done = true;
        collector.join();
        System.out.print(SAID);
    }

    private static void work() {
        say();
        for (int i = 0; i < 20; i++) new Deflater().end();
    }

    private static void rename() {
        work();
        Thread.currentThread().setName("after-it-has-renamed-itself-2");
        work();
        for (int i = 0; i < 300; i++) {
            Thread.currentThread().setName("often-another-name-" + i);
            new Deflater().end();
        }
        Thread.currentThread().setName("brief");
        work();
        Thread.currentThread().setName("after-it-has-renamed-itself-at-last");
        work();
    }

    /** Fields that look like a name. */
    private static final class Subclass extends Thread {
        final String before = "a-subclass-of-thread-no", name = "a-subclass-of-thread-not-this-one";

        Subclass() {
            super("a-subclass-of-thread");
        }

        @Override
        public void run() {
            work();
            if (before.equals(name)) throw new AssertionError();
        }
    }

    /** From JDK 21 on: the threads that carry them have names of their own. */
    private static void workInVirtualThreads() throws Exception {
        Method start;
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException none) {
            return;
        }
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 50; i++) all.add((Thread) start.invoke(null, (Runnable) () -> new Deflater().end()));
        for (Thread thread : all) thread.join();
    }

    private static void collect() {
        for (int i = 0; !done; i++) {
            byte[][] some = new byte[64][];
            for (int j = 0; j < some.length; j++) some[j] = new byte[8 << 10];
            garbage = some;
            if (i % 200 == 0) System.gc();
        }
        work();
    }

    private static void say() {
        try {
            String[] path = Files.readSymbolicLink(Path.of("/proc/thread-self")).toString().split("/");
            StringBuilder line = new StringBuilder("NAME " + path[2] + " ");
            for (char c : Thread.currentThread().getName().toCharArray()) {
                if (c >= 0x20 && c < 0x7f && c != '\\') {
                    line.append(c);
                } else {
                    line.append(String.format("\\u%04x", (int) c));
                }
            }
            SAID.append(line.append('\n'));
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}
