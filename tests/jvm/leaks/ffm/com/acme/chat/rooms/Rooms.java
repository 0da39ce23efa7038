package com.acme.chat.rooms;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.shop.server.Held;
import org.shop.server.Service;

/** Direct buffers made by virtual threads: the carrier's frames are the JDK's, ours end where the virtual thread begins. */
public final class Rooms implements Service {
  private static final int ROOMS = 500;
  private final List<ByteBuffer> history = Collections.synchronizedList(new ArrayList<>());

  @Override
  public Held serve() {
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int room = 0; room < ROOMS; room++) {
        int bytes = 16_000 + room;
        threads.submit(() -> open(bytes));
      }
    }
    return Held.bytes(history.stream().mapToLong(ByteBuffer::capacity).sum());
  }

  private void open(int bytes) {
    history.add(ByteBuffer.allocateDirect(bytes));
    Thread.yield();
    history.add(ByteBuffer.allocateDirect(bytes));
  }
}
