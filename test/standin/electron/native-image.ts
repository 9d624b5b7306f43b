import { existsSync, readFileSync } from 'node:fs';

const PNG = 0x89504e47;

export class NativeImage {
  readonly #bytes: Buffer;
  #template = false;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  isEmpty(): boolean {
    return this.#bytes.length < 24 || this.#bytes.readUInt32BE(0) !== PNG;
  }

  getSize(): { width: number; height: number } {
    if (this.isEmpty()) return { width: 0, height: 0 };
    return { width: this.#bytes.readUInt32BE(16), height: this.#bytes.readUInt32BE(20) };
  }

  toPNG(): Buffer {
    return Buffer.from(this.#bytes);
  }

  setTemplateImage(template: boolean): void {
    this.#template = template;
  }

  isTemplateImage(): boolean {
    return this.#template;
  }
}

export const nativeImage = {
  createEmpty: () => new NativeImage(Buffer.alloc(0)),
  createFromPath: (file: string) => new NativeImage(existsSync(file) ? readFileSync(file) : Buffer.alloc(0)),
  createFromBuffer: (bytes: Buffer) => new NativeImage(Buffer.from(bytes)),
};
