"""The leak programs: what each leaks, through what, and where its truth comes from.

`each` is given where the size is the library's secret: bytes per object, from the library's own structures, as wide as the libraries of
Debian 12 and of the JDK's own copies differ. Then the sampled run is compared with what the exact run found. Without `each` the program
counts to the byte, and both runs are compared with that.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from leak_check import KIB, MIB, Leak  # noqa: E402

UNSAFE = "jdk.internal.misc.Unsafe.allocateMemory0"
# zlib: a deflate state has a window of 64 KiB, two hash tables of 64 KiB each, 64 KiB for pending output, and itself of 6 KB. An inflate
# state has 7 KiB and, from its first output on, a window of 32 KiB.
DEFLATE = (265_000, 270_000)
INFLATE = (39_000, 42_000)

ZIP = [
    Leak("com.acme.billing.pdf.InvoicePdf", "compress", ("java.util.zip.Deflater.init",), each=DEFLATE),
    Leak("com.acme.mail.attachments.Attachments", "decode", ("java.util.zip.Inflater.",), each=INFLATE),
    Leak("org.shop.export.CsvExport", "export", ("java.util.zip.Deflater.init", "java.util.zip.GZIPOutputStream"), each=DEFLATE),
    Leak("net.courier.tracking.TrackingFeed", "poll", ("java.util.zip.Inflater.", "java.util.zip.GZIPInputStream"), each=INFLATE),
    Leak("io.fleet.config.Templates", "render", ("java.util.zip.Inflater.",), each=INFLATE, bookkeeping=1 * MIB),
]

BUFFERS = [
    Leak("org.shop.images.Thumbnails", "decode", (UNSAFE, "java.nio.ByteBuffer.allocateDirect")),
    Leak("com.acme.ingest.upload.Uploader", "upload", (UNSAFE, "sun.nio.ch.Util.getTemporaryDirectBuffer"), bookkeeping=1 * MIB),
    Leak("io.fleet.cache.OffHeapCache", "put", (UNSAFE, "sun.misc.Unsafe.allocateMemory")),
    Leak("net.courier.routes.RoutePlanner", None, (UNSAFE, "java.util.stream.", "net.courier.routes.RoutePlanner.")),
    Leak("com.acme.archive.Archive", None, ("sun.nio.ch.FileChannelImpl.map",), bookkeeping=1 * MIB, mapped=True),
    # A decompressor's structures and tables, of libjpeg-turbo or of the JDK's own libjpeg 6b.
    Leak("org.shop.scans.ScanReader", "measure", ("com.sun.imageio.plugins.jpeg.JPEGImageReader.",),
         each=(1_500, 40_000), bookkeeping=3 * MIB),
]

JNI = [
    Leak("com.acme.pricing.tables.PriceTables", "load0", ("ReadTable", "lib:libpricetables.so")),
    Leak("net.courier.labels.LabelPrinter", "render0", ()),
    # Blocks of 64 references in 632 bytes (17), and the array of the blocks.
    Leak("org.shop.events.Listeners", "listen0", ("OopStorage", "lib:libshopnative.so"), each=(9.5, 12)),
    Leak("com.acme.mail.headers.HeaderParser", "parse0", ("jni_GetStringUTFChars", "lib:libshopnative.so")),
    Leak("io.fleet.pixels.PixelBuffers", "show0", ("jni_GetByteArrayElements", "lib:libshopnative.so")),
    Leak("com.voice.codec.Codec", None, ("Work", "lib:libvoicecodec.so")),
    Leak("com.acme.fraud.scoring.FraudModel", None, ("Work", "lib:libfraudmodel.so")),  # by who created the thread
]

OBSERVE = "-agentpath:{native}/libacmeobserve.so="
AGENTS = [
    Leak("org.shop.pages.Pages", None, ("Keep", "Collect", "lib:libacmeobserve.so"), module="observe", flags=(OBSERVE + "thread",)),
    Leak("org.shop.pages.Pages", None, ("Keep", "OnClassPrepare", "lib:libacmeobserve.so"), module="observe",
         flags=(OBSERVE + "callbacks",)),
    Leak("org.shop.pages.Pages", None, (UNSAFE, "com.observe.agent.ClassCounter.keep"), module="com.observe.agent",
         flags=("-javaagent:{native}/observe-agent.jar",)),
]

CLASSES_AND_THREADS = [
    # A class loader's tables, and a class's symbols: 3.4 KB a rule on 17.
    Leak("com.acme.rules.engine.RuleCompiler", "evaluate", ("java.lang.ClassLoader.defineClass1",),
         each=(1_500, 8_000), bookkeeping=1 * MIB),
    # The JVM's structures of a thread, its parking events and first arenas: 4.8 KB a thread on 17.
    # What the threads themselves ask for, in stacks without an owner, is their creator's, too.
    Leak("org.shop.jobs.JobRunner", "schedule", ("java.lang.Thread.start0",), each=(2_500, 12_000), bookkeeping=512 * KIB),
]

WRAPPERS = [
    # An encoder of level 1 with its buffers: 1.36 MB.
    Leak("com.acme.logs.shipping.LogShipper", "ship", ("lib:libzstd", "com.github.luben.zstd."),
         each=(500_000, 2_000_000), bookkeeping=1 * MIB, jars=("zstd-jni",), package="libzstd-jni-java"),
    # A block of 64 KiB and its compressed form, rounded up by the pool.
    Leak("org.shop.catalog.CatalogSnapshot", "save", (UNSAFE, "org.xerial.snappy."),
         each=(140_000, 160_000), bookkeeping=1 * MIB, jars=("snappy-java",), package="libsnappy-java"),
    Leak("io.fleet.checksums.Checksums", "start", ("net.jpountz.xxhash.XXHashJNI.XXH64_init",),
         bookkeeping=1 * MIB, jars=("lz4-java",), package="liblz4-java"),
    # The compiled program of a statement: 5 KB.
    Leak("com.acme.orders.db.OrderDao", "find", ("lib:libsqlite", "org.sqlite."),
         each=(2_500, 12_000), bookkeeping=3 * MIB, jars=("xerial-sqlite-jdbc",), package="libxerial-sqlite-jdbc-java"),
]

JNA = [
    Leak("io.fleet.geo.Raster", "load", ("com.sun.jna.Native.malloc", "com.sun.jna.Memory"),
         bookkeeping=3 * MIB, jars=("jna",), package="libjna-java"),
    Leak("net.courier.addresses.AddressBook", "look", ("strdup", "lib:libffi", "com.sun.jna.Native.invoke"),
         bookkeeping=3 * MIB, jars=("jna",), package="libjna-java"),
    # A callback's structure, its argument types and a weak reference to it; the code itself is mapped.
    Leak("com.acme.trading.quotes.QuoteFeed", "subscribe", ("lib:libjnidispatch", "com.sun.jna.Native.createNativeCallback"),
         each=(150, 600), bookkeeping=3 * MIB, jars=("jna",), package="libjna-java"),
]

NETTY_JARS = ("netty-buffer", "netty-common")
NETTY = [
    # One arena of chunks of 1 MiB: the first buffer in a chunk is charged for all of it.
    Leak("io.messaging.gateway.FrameDecoder", "decode", (UNSAFE, "io.netty.buffer.PoolArena"),
         bookkeeping=3 * MIB, jars=NETTY_JARS, package="libnetty-java",
         flags=("-Dio.netty.allocator.maxOrder=7", "-Dio.netty.allocator.numDirectArenas=1")),
    Leak("org.shop.sessions.SessionStore", "store", (UNSAFE, "io.netty.buffer.UnpooledByteBufAllocator"),
         bookkeeping=3 * MIB, jars=NETTY_JARS, package="libnetty-java"),
]

FFM = [
    Leak("com.acme.genome.reads.ReadStore", "keep", (UNSAFE, "jdk.internal.foreign."), bookkeeping=1 * MIB, since=22),
    Leak("org.shop.vectors.VectorIndex", "add", (), bookkeeping=2 * MIB, since=22),
    Leak("io.fleet.signals.SignalBuffer", "record", (), bookkeeping=2 * MIB, since=22),
    Leak("net.courier.sorting.Sorter", "compare", (UNSAFE, "qsort"), bookkeeping=2 * MIB, since=22),
    Leak("com.acme.chat.rooms.Rooms", "open", (UNSAFE,), bookkeeping=1 * MIB, since=22),
]

GROUPS = {"zip": ZIP, "buffers": BUFFERS, "jni": JNI, "agents": AGENTS, "classes_and_threads": CLASSES_AND_THREADS, "wrappers": WRAPPERS,
          "jna": JNA, "netty": NETTY, "ffm": FFM}
