package com.acme.library.index;

import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.store.IOContext;
import org.apache.lucene.store.IndexInput;
import org.apache.lucene.store.IndexOutput;
import org.apache.lucene.store.MMapDirectory;
import org.shop.server.Held;
import org.shop.server.Service;

/** Lucene's mapped files, opened and not closed. */
public final class Catalogue implements Service {
  private static final int VOLUMES = 16;
  private static final int VOLUME_BYTES = 1 << 20;
  private final List<IndexInput> open = new ArrayList<>();
  private MMapDirectory directory;

  @Override
  public Held serve() throws IOException {
    directory = new MMapDirectory(Files.createTempDirectory("catalogue"));
    for (int volume = 0; volume < VOLUMES; volume++) {
      try (IndexOutput out = directory.createOutput("volume" + volume, IOContext.DEFAULT)) {
        out.writeBytes(new byte[VOLUME_BYTES], VOLUME_BYTES);
      }
      read(volume);
    }
    for (String file : directory.listAll()) directory.deleteFile(file);
    return Held.bytes((long) VOLUMES * VOLUME_BYTES);
  }

  private void read(int volume) throws IOException {
    open.add(directory.openInput("volume" + volume, IOContext.DEFAULT));
  }
}
