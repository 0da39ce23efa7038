package net.courier.routes;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.shop.server.Held;
import org.shop.server.Service;

/** Direct buffers made in lambdas of a parallel stream: most of the stacks are the JDK's own pool, with only one frame of ours. */
public final class RoutePlanner implements Service {
  private static final int ROUTES = 600;
  private List<ByteBuffer> graphs;

  @Override
  public Held serve() {
    graphs =
        IntStream.range(0, ROUTES)
            .parallel()
            .mapToObj(route -> ByteBuffer.allocateDirect(20_000 + route))
            .collect(Collectors.toList());
    return Held.bytes(graphs.stream().mapToLong(ByteBuffer::capacity).sum());
  }
}
