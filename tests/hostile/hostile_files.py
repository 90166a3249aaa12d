"""Files that are not what their names say."""

import gzip
import io
import lzma
import pickle
import struct
import tarfile
import zipfile

import numpy as np

BOMB = 1 << 24  # zeros, which pack a thousandfold


def member(name, content=b"", kind=tarfile.REGTYPE, target="", size=None):
    """(header, content) of a member of an archive; size: what the header says."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, target, len(content) if size is None else size
    return info, content


def tar(*members):
    """A gzipped archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content) if len(content) == info.size else None)
    return buffer.getvalue()


def archives(name):
    """{kind: bytes} of archives in which the member of this name is not what it should be."""
    return {
        "absolute": tar(member(f"/{name}", b"ab" * 2000), member("/tmp/pwned", b"ab")),
        "upwards": tar(member(f"../../{name}", b"ab" * 2000), member("../../pwned", b"ab")),
        "a link out": tar(member(name, kind=tarfile.SYMTYPE, target="/etc/passwd")),
        "a device": tar(member(name, kind=tarfile.CHRTYPE)),
        "a bomb": tar(member(name, bytes(BOMB))),
        "of 8 GiB, it says": tar(member(name, size=1 << 33)),
        "cut": tar(member(name, bytes(3074)))[:-20],
        "no archive": gzip.compress(b"x" * 600),
        "nothing": b"",
    }


class Pwned:
    """An object whose unpickling would leave a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def pickles(folder, *names):
    """Archives of arrays that are pickles, and a pickle with the name of such an archive."""
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.array([Pwned(folder / "pwned")], dtype=object) for name in names})
    return {"of objects": buffer.getvalue(), "a pickle": pickle.dumps(Pwned(folder / "pwned"))}


def zipped(name, content, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def zips(name):
    """{kind: bytes} of zip archives whose member of this name is not readable, or too large."""
    good = zipped(name, b"1,2\n" * 100)
    central = good.index(b"PK\1\2")
    patched = {
        "encrypted": [(6, b"\1\0"), (central + 8, b"\1\0")],
        "an unknown method": [(8, b"\x63\0"), (central + 10, b"\x63\0")],
        "too long": [(22, b"\xff\xff\xff\x7f"), (central + 24, b"\xff\xff\xff\x7f")],
        "in the wrong place": [(central + 42, b"\xff\xff\xff\x7f")],
    }
    found = {
        "a bomb": zipped(name, bytes(BOMB)),
        "upwards": zipped(f"../../{name}", b"1"),
        "cut": good[:-10],
    }
    for kind, changes in patched.items():
        found[kind] = overwritten(good, *changes)
    packed = zipped(name, b"x" * 99, zipfile.ZIP_BZIP2)
    return found | {"packed badly": overwritten(packed, (packed.index(b"BZh") + 4, bytes(6)))}


def overwritten(content, *changes):
    """Bytes with others at some places."""
    content = bytearray(content)
    for place, new in changes:
        content[place : place + len(new)] = new
    return bytes(content)


def fill(folder, contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)


def hostile_files(folder):
    """(data set, {file: bytes}) for every decoder."""
    for content in archives("train.bin").values():
        yield "cifar100", {"cifar-100-binary.tar.gz": content}
    for content in archives("data_batch_1.bin").values():
        yield "cifar10", {"cifar-10-binary.tar.gz": content}
    for content in archives("aclImdb/train/pos/0_9.txt").values():
        yield "imdb", {"aclImdb_v1.tar.gz": content}
    for content in zips("sgemm_product.csv").values():
        yield "sgemm", {"sgemm_product_dataset.zip": content}
    for content in pickles(folder, "x_train", "x_test", "y_train", "y_test").values():
        yield "fashion-sample", {"fashion-sample.npz": content}
        yield (
            "cifar10",
            {"labels.npz": content} | {f"data_batch_{i}.webp": b"RIFF" for i in range(1, 6)},
        )
    for csv in (b"", b"a,b\n1", b"a\0b", b"\xff", b'"' + b"x" * 200_000, b"nan,inf,1e999\n1,2,3"):
        yield "california-housing", {"housing.csv": csv}
        yield "california-housing", {"housing.csv.gz": gzip.compress(csv)[:-4]}
        yield "sgemm", {"sgemm_product.csv.gz": gzip.compress(csv)}
        yield "mnist-5k", {"mnist_5k.csv.gz": gzip.compress(csv)}
        yield (
            "diabetes",
            {f"diabetes_{part}.csv.gz": gzip.compress(csv) for part in ("data_raw", "target")},
        )
        yield "imdb", {"imdb_reviews.csv.xz": lzma.compress(csv)}
    yield "imdb", {"imdb_reviews.csv.xz": b"\xfd7zXZ\0"}
    yield "photo-patches", {"china.jpg": b"\xff\xd8\xff", "flower.jpg": b""}


def idx(array):
    return (
        b"\0\0\x08"
        + bytes([array.ndim])
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )
