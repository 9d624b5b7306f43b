export interface LayerFinding {
  readonly rule: string;
  /** Begins with the offending file, ends with the file, package or global that it must not come to. */
  readonly chain: readonly string[];
}
/** Findings for the tree below `root` (the folder that holds main, agent, preload and renderer). */
export function checkLayers(root: string): LayerFinding[];
