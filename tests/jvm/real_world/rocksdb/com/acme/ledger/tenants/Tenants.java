package com.acme.ledger.tenants;

import java.util.ArrayList;
import java.util.List;
import org.rocksdb.ColumnFamilyOptions;
import org.rocksdb.RocksDB;
import org.shop.server.Held;
import org.shop.server.Service;

/** Options of column families that are never closed: each has a block cache of its own (kafka#1411, flink#28251). */
public final class Tenants implements Service {
  private static final int TENANTS = 2_000;
  private final List<ColumnFamilyOptions> open = new ArrayList<>();

  @Override
  public Held serve() {
    RocksDB.loadLibrary();
    for (int tenant = 0; tenant < TENANTS; tenant++) configure();
    return Held.objects(open.size());
  }

  private void configure() {
    open.add(new ColumnFamilyOptions());
  }
}
