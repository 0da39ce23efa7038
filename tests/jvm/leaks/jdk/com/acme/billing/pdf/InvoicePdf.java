package com.acme.billing.pdf;

import java.util.ArrayList;
import java.util.List;
import java.util.zip.Deflater;
import org.shop.server.Held;
import org.shop.server.Service;

/** A Deflater per invoice, ended by nobody (aws-glue-schema-registry#203, hazelcast#17107, pngtastic#9). */
public final class InvoicePdf implements Service {
  private static final int INVOICES = 48;
  private final List<Deflater> deflaters = new ArrayList<>();

  @Override
  public Held serve() {
    for (int invoice = 0; invoice < INVOICES; invoice++) compress(new byte[10_000]);
    return Held.objects(deflaters.size());
  }

  private int compress(byte[] page) {
    Deflater deflater = new Deflater(Deflater.BEST_COMPRESSION);
    deflaters.add(deflater);
    deflater.setInput(page);
    deflater.finish();
    return deflater.deflate(new byte[20_000]);
  }
}
