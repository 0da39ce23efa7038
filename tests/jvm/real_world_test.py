#!/usr/bin/env python3
"""What people really leak, with the libraries as they are published: each is charged to the application's package.

The same promise as leaks_test.py's and judged alike, with libraries that no distribution packages or only old ones of: RocksDB, Netty and
its BoringSSL, zstd-jni, DuckDB, Lucene, ONNX Runtime. They are fetched with Maven and kept under --cache. Where no repository can be
reached the test is skipped and says so. `scripts/test --real-world` runs it.
"""
import argparse
import glob
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
for folder in ("leaks", "real_world"):
    sys.path.insert(0, os.path.join(here, folder))
import leak_check  # noqa: E402
import maven_jars  # noqa: E402
from leak_check import MIB, Leak  # noqa: E402

NETTY = "4.2.20.Final"
TCNATIVE = "2.0.84.Final"
ARTIFACTS = {
    "rocksdb": ["org.rocksdb:rocksdbjni:10.10.1.1:linux64"],
    "netty": [f"io.netty:netty-{part}:{NETTY}" for part in ("buffer", "codec-base", "common", "handler", "resolver", "transport",
                                                           "transport-native-unix-common")]
             + [f"io.netty:netty-tcnative-classes:{TCNATIVE}", f"io.netty:netty-tcnative-boringssl-static:{TCNATIVE}:linux-x86_64"],
    "zstd": ["com.github.luben:zstd-jni:1.5.7-28"],
    "duckdb": ["org.duckdb:duckdb_jdbc:2.0.0.1"],
    "lucene": ["org.apache.lucene:lucene-core:9.12.3"],
    "onnxruntime": ["com.microsoft.onnxruntime:onnxruntime:1.19.2"],
}
# `jars` is the library here. Sizes per object are as wide as they are because each release has its own; that the sampled run agrees with
# the exact one is what is sharp.
LEAKS = [
    Leak("com.acme.ledger.scans.RangeScans", "scan", ("lib:librocksdbjni", "org.rocksdb.RocksDB.newIterator"),
         each=(1_000, 20_000), bookkeeping=6 * MIB, jars=("rocksdb",)),
    # A batch has its bytes in one string: 12 bytes of header, the key and 10,000 bytes of value, as far as the string grew.
    Leak("com.acme.ledger.batches.Postings", "post", ("lib:librocksdbjni", "org.rocksdb.WriteBatch."),
         each=(10_000, 30_000), bookkeeping=2 * MIB, jars=("rocksdb",)),
    Leak("com.acme.ledger.tenants.Tenants", "configure", ("lib:librocksdbjni", "org.rocksdb.ColumnFamilyOptions."),
         each=(1_000, 100_000), bookkeeping=2 * MIB, jars=("rocksdb",)),
    # One arena of chunks of 1 MiB.
    Leak("com.acme.edge.frames.Frames", "decode", ("jdk.internal.misc.Unsafe.allocateMemory0", "io.netty.buffer.PoolArena."),
         bookkeeping=4 * MIB, jars=("netty",),
         flags=("-Dio.netty.allocator.maxOrder=7", "-Dio.netty.allocator.numDirectArenas=1")),
    Leak("com.acme.edge.tls.TlsContexts", "connect", ("lib:libnetty_tcnative",),
         each=(1_000, 200_000), bookkeeping=8 * MIB, jars=("netty",)),
    # From JDK 22 on it calls by FFM, whose classes are many.
    Leak("com.acme.logs.shipping.LogShipper", "ship", ("lib:libzstd-jni", "com.github.luben.zstd."),
         each=(500_000, 2_000_000), bookkeeping=6 * MIB, jars=("zstd",)),
    # What malloc knows of a result: 8 KB. Its rows are in buffers that DuckDB maps.
    Leak("com.acme.reports.sales.SalesReport", "query", ("lib:libduckdb_java", "org.duckdb."),
         each=(2_000, 100_000), bookkeeping=10 * MIB, jars=("duckdb",)),
    Leak("com.acme.library.index.Catalogue", None, ("org.apache.lucene.store.MMapDirectory",), bookkeeping=2 * MIB, jars=("lucene",),
         mapped=True, note="mappings are not recorded yet: its bytes are not asserted, only that nobody else grew"),
    # 100 * 200 floats.
    Leak("com.acme.vision.tensors.Tensors", "load", ("lib:libonnxruntime", "ai.onnxruntime."),
         each=(80_000, 90_000), bookkeeping=4 * MIB, jars=("onnxruntime",)),
]


def compile_programs(name, jars, shop, cache):
    """The directory of the classes that use the library NAME."""
    sources = glob.glob(f"{here}/real_world/{name}/**/*.java", recursive=True)
    sources = sources or glob.glob(f"{here}/leaks/wrappers/{name}/**/*.java", recursive=True)
    classes = os.path.join(cache, name, "classes")
    home = next(iter(leak_check.jdks()))
    class_path = ":".join([shop, *jars])
    subprocess.run([f"{home}/bin/javac", "--release", "11", "-proc:none", "-nowarn", "-cp", class_path, "-d", classes, *sources],
                   check=True, timeout=200)
    return classes


def main():
    parser = argparse.ArgumentParser()
    for name in ("library", "cadastre", "native", "rules", "cache"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--classes", required=True, action="append", help="the directory with the launcher and the innocent parts")
    parser.add_argument("--only", help="a part of the class's name")
    args = parser.parse_args()
    leaks = [leak for leak in LEAKS if not args.only or args.only in leak.name]

    fetched, unreachable = {}, None
    for name in dict.fromkeys(leak.jars[0] for leak in leaks):
        if unreachable:
            fetched[name] = (None, unreachable)
            continue
        try:
            jars = maven_jars.fetch(ARTIFACTS[name], os.path.join(args.cache, name))
            fetched[name] = ([compile_programs(name, jars, args.classes[0], args.cache), *jars], None)
        except maven_jars.NotServed as error:
            fetched[name] = (None, f"{name} is not served: {error}")
        except maven_jars.Unreachable as error:
            why = f"no Maven repository can be reached: {error}"
            fetched[name] = (None, why)
            # Who has answered once is there; then it is only this library that cannot be had.
            unreachable = None if any(jars for jars, _ in fetched.values()) else why
    sys.exit(leak_check.check_all(args, leaks, lambda leak: fetched[leak.jars[0]]))


if __name__ == "__main__":
    main()
