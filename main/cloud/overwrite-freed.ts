/** Sizes of the pieces that sockets and parsers read into, and of what they are split into once freed. */
const PIECES = [65_536, 32_768, 16_384, 8_192, 4_096, 2_048, 1_024] as const;
/** Of each size: enough to take what is free of it, little enough to be done in a few milliseconds (8 MiB in all). */
const BYTES_PER_SIZE = 1_200_000;

/**
 * Takes freed memory of the usual sizes from the allocator, zeroes it and gives it back. Node reads a request into a buffer of
 * its own before a byte of it can be zeroed by us, and frees it as it is: a key that came in so stays readable until
 * somebody needs the room. This is that somebody. It lowers the odds of a copy and promises nothing.
 */
export function overwriteFreedMemory(): void {
  for (const size of PIECES) {
    const taken: Uint8Array[] = [];
    for (let bytes = 0; bytes < BYTES_PER_SIZE; bytes += size) taken.push(Buffer.allocUnsafeSlow(size).fill(0));
    taken.length = 0;
  }
}
