package com.acme.mail.attachments;

import java.util.ArrayList;
import java.util.List;
import java.util.zip.DataFormatException;
import java.util.zip.Deflater;
import java.util.zip.Inflater;
import org.shop.server.Held;
import org.shop.server.Service;

/** An Inflater per decoded message (HdrHistogram#85, spring-boot#13935). */
public final class Attachments implements Service {
  private static final int MESSAGES = 400;
  private final List<Inflater> inflaters = new ArrayList<>();

  @Override
  public Held serve() throws DataFormatException {
    byte[] packed = new byte[10_000];
    Deflater deflater = new Deflater();
    deflater.setInput(new byte[60_000]);
    deflater.finish();
    int length = deflater.deflate(packed);
    deflater.end();
    for (int message = 0; message < MESSAGES; message++) decode(packed, length);
    return Held.objects(inflaters.size());
  }

  private void decode(byte[] packed, int length) throws DataFormatException {
    Inflater inflater = new Inflater();
    inflaters.add(inflater);
    inflater.setInput(packed, 0, length);
    byte[] part = new byte[20_000];
    while (inflater.inflate(part) > 0) {
      // Attachments come in parts; zlib keeps a window between them.
    }
  }
}
