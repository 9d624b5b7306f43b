import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The packaging configuration and electron-builder's own code that reads it, typed as far as the tests use them. */
export const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const require = createRequire(import.meta.url);
// electron-builder brings these; it is asked from where it stands.
const builder = createRequire(require.resolve('electron-builder/package.json'));

export interface SystemOptions {
  readonly files: readonly string[];
  readonly [option: string]: unknown;
}

export interface FileSet {
  readonly from: string;
  readonly to: string;
  readonly filter?: readonly string[];
}

export interface Packaging {
  readonly appId: string;
  readonly productName: string;
  readonly files: readonly string[];
  readonly extraResources: readonly FileSet[];
  readonly electronFuses: Readonly<Record<string, boolean>>;
  readonly linux: SystemOptions & { readonly executableName: string };
  readonly mac: SystemOptions;
  readonly win: SystemOptions;
  readonly [option: string]: unknown;
}

const yaml = builder('js-yaml') as { load(text: string): unknown };
export const readPackaging = (): Packaging =>
  yaml.load(readFileSync(path.join(root, 'electron-builder.yml'), 'utf8')) as Packaging;

/** Rejects with what electron-builder would say at the start of a build. */
export async function validate(configuration: unknown): Promise<void> {
  const { validateConfiguration } = builder('app-builder-lib/out/util/config/config.js') as {
    validateConfiguration(configuration: unknown, logger: unknown): Promise<void>;
  };
  const { DebugLogger } = builder('builder-util') as { DebugLogger: new (enabled: boolean) => unknown };
  await validateConfiguration(configuration, new DebugLogger(false));
}

interface FileMatcher {
  createFilter(): (file: string, stat: { isDirectory(): boolean }) => boolean;
}

/**
 * What a target takes of installed packages.
 * @param file relative to the project
 */
export function takesPackageFile(
  packaging: Packaging,
  system: 'linux' | 'mac' | 'win',
  arch: string,
  file: string,
): boolean {
  const { getNodeModuleFileMatcher } = builder('app-builder-lib/out/fileMatcher.js') as {
    getNodeModuleFileMatcher(
      from: string,
      to: string,
      expand: (pattern: string) => string,
      options: SystemOptions,
      packager: object,
    ): FileMatcher;
  };
  const expand = (pattern: string) => pattern.replaceAll(`\${arch}`, arch);
  const packager = { config: { files: [{ filter: packaging.files }] }, debugLogger: { isEnabled: false } };
  const filter = getNodeModuleFileMatcher(root, '/packed', expand, packaging[system], packager).createFilter();
  return filter(path.join(root, file), { isDirectory: () => false });
}

/** The menu entry that is installed with the deb. */
export async function desktopEntry(packaging: Packaging): Promise<string> {
  const { LinuxTargetHelper } = builder('app-builder-lib/out/targets/LinuxTargetHelper.js') as {
    LinuxTargetHelper: new (packager: object) => { computeDesktopEntry(options: object): Promise<string> };
  };
  const metadata = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as Record<string, string>;
  const { productName, linux } = packaging;
  const helper = new LinuxTargetHelper({
    appInfo: { productName, sanitizedProductName: productName, description: metadata.description },
    executableName: linux.executableName,
    platformSpecificBuildOptions: linux,
    info: { metadata },
    config: packaging,
    fileAssociations: [],
  });
  return helper.computeDesktopEntry(linux);
}

/** Names of a package's dependencies, theirs and so on, without itself. */
export function dependenciesOf(name: string, seen = new Set<string>()): Set<string> {
  const file = path.join(root, 'node_modules', name, 'package.json');
  const { dependencies = {} } = JSON.parse(readFileSync(file, 'utf8')) as { dependencies?: Record<string, string> };
  for (const dependency of Object.keys(dependencies)) {
    if (seen.has(dependency)) continue;
    seen.add(dependency);
    dependenciesOf(dependency, seen);
  }
  return seen;
}

/** A maintainer script or profile as electron-builder fills it in: an unknown macro is an error there too. */
export function rendered(file: string, values: Readonly<Record<string, string>>): string {
  return readFileSync(path.join(root, 'assets/package/linux', file), 'utf8').replace(
    /\$\{([a-zA-Z]+)\}/g,
    (_, name: string) => {
      const value = values[name];
      if (value === undefined) throw new Error(`Macro ${name} is not defined`);
      return value;
    },
  );
}
