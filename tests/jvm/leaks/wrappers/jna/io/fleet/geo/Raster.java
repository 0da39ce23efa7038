package io.fleet.geo;

import com.sun.jna.Memory;
import java.util.ArrayList;
import java.util.List;
import org.shop.server.Held;
import org.shop.server.Service;

/** JNA memory in a list that only grows. Native.malloc jumps to malloc, so JNA's own library is in no frame. */
public final class Raster implements Service {
  private static final int TILES = 1_500;
  private final List<Memory> tiles = new ArrayList<>();

  @Override
  public Held serve() {
    long bytes = 0;
    for (int tile = 0; tile < TILES; tile++) bytes += load(5_000 + tile);
    return Held.bytes(bytes);
  }

  private long load(int pixels) {
    Memory tile = new Memory(pixels);
    tiles.add(tile);
    return tile.size();
  }
}
