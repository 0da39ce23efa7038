package com.acme.archive;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import org.shop.server.Held;
import org.shop.server.Service;

/** Mapped files that are never unmapped. */
public final class Archive implements Service {
  private static final int VOLUMES = 16;
  private static final int VOLUME_BYTES = 1 << 20;
  private final List<ByteBuffer> volumes = new ArrayList<>();

  @Override
  public Held serve() throws IOException {
    Path file = Files.createTempFile("archive", ".bin");
    try {
      Files.write(file, new byte[VOLUME_BYTES]);
      for (int volume = 0; volume < VOLUMES; volume++) open(file);
    } finally {
      Files.delete(file);
    }
    return Held.bytes((long) VOLUMES * VOLUME_BYTES);
  }

  private void open(Path file) throws IOException {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      volumes.add(channel.map(FileChannel.MapMode.READ_ONLY, 0, VOLUME_BYTES));
    }
  }
}
