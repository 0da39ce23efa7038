package com.acme.ledger.scans;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksIterator;
import org.shop.server.Held;
import org.shop.server.Service;

/** Iterators that are never closed (kafka#2122, rocksdb#10762). */
public final class RangeScans implements Service {
  private static final int SCANS = 2_000;
  private final List<RocksIterator> open = new ArrayList<>();
  private RocksDB database;

  @Override
  public Held serve() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true)) {
      database = RocksDB.open(options, Files.createTempDirectory("ledger").toString());
    }
    for (int entry = 0; entry < 1_000; entry++) {
      database.put(("entry" + entry).getBytes(StandardCharsets.UTF_8), new byte[100]);
    }
    for (int scan = 0; scan < SCANS; scan++) scan(scan);
    return Held.objects(open.size());
  }

  private void scan(int from) {
    RocksIterator iterator = database.newIterator();
    open.add(iterator);
    iterator.seek(("entry" + from).getBytes(StandardCharsets.UTF_8));
  }
}
