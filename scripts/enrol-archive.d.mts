interface Pins {
  readonly node: {
    readonly version: string;
    readonly files: Readonly<Record<string, { readonly url: string; readonly sha256: string; readonly folder: string }>>;
  };
  readonly ollama: { readonly version: string };
}

export function filesOf(folder: string, takes: (name: string) => boolean): Map<string, Buffer>;
export function archive(files: ReadonlyMap<string, Buffer>): Buffer<ArrayBuffer>;
export function constants(pins: Pins, version: string, agent: Buffer): Map<string, string>;
export function fill(text: string, known: ReadonlyMap<string, string>): string;
export function writeEnrolment(notices: string, out?: string): void;
