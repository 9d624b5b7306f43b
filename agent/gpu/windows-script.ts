/**
 * What the long-lived PowerShell runs: every 2 s one sample of tab-separated lines, closed by `end`.
 *
 * - `adapter  <luid>  <vendor>  <dedicated bytes>  <shared bytes>  <name>`: hardware adapters that DirectX saw at this boot
 * - `memory  <instance>  <dedicated bytes in use>  <shared bytes in use>`
 * - `engines`: the engine counters could be read; `engine  <instance>  <percent>` for each that is not idle
 *
 * The performance counters are read through pdh.dll itself. `Get-Counter` takes 2 to 3 s per call here, because it resolves some
 * 600 instances each time, and wants the counters' names in the system's language; a query that stays open is collected in
 * milliseconds and takes the English names. The type is compiled once, when the process starts.
 */
export const WINDOWS_SCRIPT = `
$ErrorActionPreference = 'Stop'
[Console]::OutputEncoding = New-Object System.Text.UTF8Encoding $false
Add-Type -TypeDefinition @'
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Runtime.InteropServices;
public static class SwitchyardGpu {
  [DllImport("pdh.dll", CharSet = CharSet.Unicode)]
  static extern uint PdhOpenQueryW(string source, IntPtr user, out IntPtr query);
  [DllImport("pdh.dll", CharSet = CharSet.Unicode)]
  static extern uint PdhAddEnglishCounterW(IntPtr query, string path, IntPtr user, out IntPtr counter);
  [DllImport("pdh.dll")]
  static extern uint PdhCollectQueryData(IntPtr query);
  [DllImport("pdh.dll", CharSet = CharSet.Unicode)]
  static extern uint PdhGetFormattedCounterArrayW(IntPtr counter, uint format, ref uint size, out uint count, IntPtr items);
  static IntPtr query, engine, dedicated, shared;
  const uint MoreData = 0x800007D2, AsDouble = 0x8200;
  public static void Open() {
    if (PdhOpenQueryW(null, IntPtr.Zero, out query) != 0) throw new Exception("pdh");
    PdhAddEnglishCounterW(query, "\\\\GPU Engine(*)\\\\Utilization Percentage", IntPtr.Zero, out engine);
    PdhAddEnglishCounterW(query, "\\\\GPU Adapter Memory(*)\\\\Dedicated Usage", IntPtr.Zero, out dedicated);
    PdhAddEnglishCounterW(query, "\\\\GPU Adapter Memory(*)\\\\Shared Usage", IntPtr.Zero, out shared);
  }
  static Dictionary<string, double> Read(IntPtr counter) {
    uint size = 0, count;
    if (counter == IntPtr.Zero) return null;
    if (PdhGetFormattedCounterArrayW(counter, AsDouble, ref size, out count, IntPtr.Zero) != MoreData) return null;
    IntPtr items = Marshal.AllocHGlobal((int)size);
    try {
      if (PdhGetFormattedCounterArrayW(counter, AsDouble, ref size, out count, items) != 0) return null;
      var values = new Dictionary<string, double>();
      for (int i = 0; i < count; i++) {
        IntPtr item = new IntPtr(items.ToInt64() + 24L * i);
        if ((uint)Marshal.ReadInt32(item, 8) > 1) continue;
        string name = Marshal.PtrToStringUni(Marshal.ReadIntPtr(item));
        values[name] = BitConverter.Int64BitsToDouble(Marshal.ReadInt64(item, 16));
      }
      return values;
    } finally { Marshal.FreeHGlobal(items); }
  }
  static string Text(double value) { return value.ToString("0.##", CultureInfo.InvariantCulture); }
  public static List<string> Sample() {
    var lines = new List<string>();
    PdhCollectQueryData(query);
    var engines = Read(engine); var own = Read(dedicated); var others = Read(shared);
    if (own != null) foreach (var each in own) {
      double more;
      bool known = others != null && others.TryGetValue(each.Key, out more);
      lines.Add("memory\\t" + each.Key + "\\t" + Text(each.Value) + "\\t" + (known ? Text(others[each.Key]) : ""));
    }
    if (engines != null) {
      lines.Add("engines");
      foreach (var each in engines) if (each.Value > 0) lines.Add("engine\\t" + each.Key + "\\t" + Text(each.Value));
    }
    return lines;
  }
}
'@
[SwitchyardGpu]::Open()
$tab = [char]9
while ($true) {
  $root = Get-ItemProperty -Path 'HKLM:\\SOFTWARE\\Microsoft\\DirectX' -ErrorAction SilentlyContinue
  foreach ($key in Get-ChildItem -Path 'HKLM:\\SOFTWARE\\Microsoft\\DirectX' -ErrorAction SilentlyContinue) {
    $one = Get-ItemProperty -Path $key.PSPath -ErrorAction SilentlyContinue
    if ($null -eq $one.AdapterLuid -or $one.AdapterLuid -eq 0 -or $one.SoftwareAdapter) { continue }
    if ($root.LastSeen -and $one.LastSeen -ne $root.LastSeen) { continue }
    [Console]::Out.WriteLine(('adapter', ('{0:x16}' -f $one.AdapterLuid), $one.VendorId, $one.DedicatedVideoMemory, $one.SharedSystemMemory, $one.Description) -join $tab)
  }
  foreach ($line in [SwitchyardGpu]::Sample()) { [Console]::Out.WriteLine($line) }
  [Console]::Out.WriteLine('end')
  [Console]::Out.Flush()
  Start-Sleep -Seconds 2
}
`;
