package com.acme.ingest.upload;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.CountDownLatch;
import org.shop.server.Held;
import org.shop.server.Service;

/** Heap buffers written by many threads: the JDK keeps a direct buffer for each of them, as large as its largest write (JDK-8147468). */
public final class Uploader implements Service {
  private static final int THREADS = 24;
  private static final int WRITE = 400_000;
  private final CountDownLatch written = new CountDownLatch(THREADS);
  private final CountDownLatch never = new CountDownLatch(1);

  @Override
  public Held serve() throws InterruptedException {
    for (int thread = 0; thread < THREADS; thread++) {
      Thread worker = new Thread(this::upload, "upload-" + thread);
      worker.setDaemon(true);
      worker.start();
    }
    written.await();
    return Held.bytes((long) THREADS * WRITE);
  }

  private void upload() {
    try (FileChannel channel = FileChannel.open(Path.of("/dev/null"), StandardOpenOption.WRITE)) {
      channel.write(ByteBuffer.allocate(WRITE));
      written.countDown();
      never.await();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (InterruptedException end) {
      Thread.currentThread().interrupt();
    }
  }
}
