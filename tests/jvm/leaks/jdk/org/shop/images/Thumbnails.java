package org.shop.images;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.shop.server.Held;
import org.shop.server.Service;

/** Direct buffers in a cache that nothing empties (http-kit#573, parquet-java#2269). */
public final class Thumbnails implements Service {
  private static final int IMAGES = 400;
  private final List<ByteBuffer> cache = new ArrayList<>();

  @Override
  public Held serve() {
    long bytes = 0;
    for (int image = 0; image < IMAGES; image++) bytes += decode(30_000 + image).capacity();
    return Held.bytes(bytes);
  }

  private ByteBuffer decode(int pixels) {
    ByteBuffer buffer = ByteBuffer.allocateDirect(pixels);
    cache.add(buffer);
    return buffer;
  }
}
