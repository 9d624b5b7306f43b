import { isIPv6 } from 'node:net';

/** Where a machine that is being added reports to. */
export interface Meeting {
  readonly address: string;
  readonly port: number;
  readonly token: string;
  /** base64 of SHA-256 over the SPKI of the key there, as curl writes it. */
  readonly pin: string;
}

/** `https://HOST:PORT/e/TOKEN`, of which everything else is a path below. */
export function meetingUrl({ address, port, token }: Omit<Meeting, 'pin'>): string {
  return `https://${isIPv6(address) ? `[${address}]` : address}:${port}/e/${token}`;
}

/**
 * One line for a POSIX shell. The script goes through a file: a pipe into sh exits 0 when the pin does not match, having run
 * what came before. Nothing here needs quoting beyond what it has: tokens and pins are base64, addresses numeric.
 */
export function posixCommand(meeting: Meeting): string {
  const url = meetingUrl(meeting);
  const pin = `'sha256//${meeting.pin}'`;
  const fetched = `curl -fsS --proto '=https' -k --pinnedpubkey ${pin} -o "$f" '${url}/sh'`;
  return `f=$(mktemp) && ${fetched} && sh "$f" '${url}' ${pin}; rm -f "$f"`;
}

/** The same for Windows. `curl.exe`: plain `curl` is another program's name in PowerShell. */
export function powershellCommand(meeting: Meeting): string {
  const url = meetingUrl(meeting);
  const pin = `'sha256//${meeting.pin}'`;
  const fetched = `curl.exe -fsS --proto '=https' -k --pinnedpubkey ${pin} -o $f '${url}/ps1'`;
  const run = `powershell -NoProfile -ExecutionPolicy Bypass -File $f '${url}' ${pin}`;
  return `$f = "$env:TEMP\\switchyard-join.ps1"; ${fetched}; if ($LASTEXITCODE -eq 0) { ${run} }; Remove-Item -Force -ErrorAction SilentlyContinue $f`;
}
