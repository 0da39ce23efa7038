package org.shop.jobs;

import java.util.concurrent.CountDownLatch;
import org.shop.server.Held;
import org.shop.server.Service;

/** A thread per job that waits for ever. Its stack is mapped; here the JVM's own blocks for it are asked for. */
public final class JobRunner implements Service {
  private static final int JOBS = 400;
  private final CountDownLatch started = new CountDownLatch(JOBS);
  private final CountDownLatch never = new CountDownLatch(1);

  @Override
  public Held serve() throws InterruptedException {
    for (int job = 0; job < JOBS; job++) schedule(job);
    started.await();
    return Held.objects(JOBS);
  }

  private void schedule(int job) {
    Thread thread = new Thread(null, this::work, "job-" + job, 128 << 10);
    thread.setDaemon(true);
    thread.start();
  }

  private void work() {
    started.countDown();
    try {
      never.await();
    } catch (InterruptedException end) {
      Thread.currentThread().interrupt();
    }
  }
}
