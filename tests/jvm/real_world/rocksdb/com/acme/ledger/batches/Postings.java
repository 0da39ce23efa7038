package com.acme.ledger.batches;

import java.util.ArrayList;
import java.util.List;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.WriteBatch;
import org.shop.server.Held;
import org.shop.server.Service;

/** Write batches that are never closed (kafka#22378). */
public final class Postings implements Service {
  private static final int BATCHES = 600;
  private final List<WriteBatch> open = new ArrayList<>();

  @Override
  public Held serve() throws RocksDBException {
    RocksDB.loadLibrary();
    for (int batch = 0; batch < BATCHES; batch++) post(batch);
    return Held.objects(open.size());
  }

  private void post(int account) throws RocksDBException {
    WriteBatch batch = new WriteBatch();
    open.add(batch);
    batch.put(new byte[] {(byte) account}, new byte[10_000]);
  }
}
