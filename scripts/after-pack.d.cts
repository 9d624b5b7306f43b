/**
 * @param resources the folder that holds app.asar
 * @param platform darwin, linux or win32
 * @param architecture x64 or arm64
 * @throws Error naming what is missing or too much
 */
export function checkResources(resources: string, platform: string, architecture: string): void;
