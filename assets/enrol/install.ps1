# Makes this machine part of a Switchyard fleet: docs/joining.md describes every step.
#
#   powershell -NoProfile -ExecutionPolicy Bypass -File install.ps1 ADDRESS PIN [-DryRun] [-Port N] [-Ollama URL] [-Mirror URL]
#   powershell -NoProfile -ExecutionPolicy Bypass -File install.ps1 -Uninstall [-DryRun]
#
# The same steps as install.sh, which says what the arguments mean. The bytes of this file are the same for everybody, and
# everything is defined before the last line runs.
param(
  [string]$From = '',
  [string]$Pin = '',
  [int]$Port = 7412,
  [string]$Ollama = 'http://127.0.0.1:11434',
  [string]$Mirror = '',
  [switch]$DryRun,
  [switch]$Uninstall
)
Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'

$AgentVersion = '@AGENT_VERSION@'
$AgentSha256 = '@AGENT_SHA256@'
$NodeVersion = '@NODE_VERSION@'
$NodeUrl = '@NODE_WIN32_X64_URL@'
$NodeSha256 = '@NODE_WIN32_X64_SHA256@'
$NodeFolder = '@NODE_WIN32_X64_FOLDER@'
$Service = 'SwitchyardAgent'
$NeededBytes = 600MB
$Base = Join-Path $env:ProgramFiles 'Switchyard Agent'
$Data = Join-Path $env:ProgramData 'Switchyard Agent'
$Cache = Join-Path $Base 'cache'
$Here = Join-Path $Base $AgentVersion
$Curl = Join-Path $env:SystemRoot 'System32\curl.exe'
$Tar = Join-Path $env:SystemRoot 'System32\tar.exe'
$script:Step = ''

# Windows starts as services only programs that speak with its service manager; Node.js does not. This one does, starts the agent,
# and ends when the agent ends, so that Windows starts both again.
$HostSource = @'
using System;
using System.Diagnostics;
using System.ServiceProcess;
using System.Text;

public class SwitchyardServiceHost : ServiceBase {
  private readonly string[] command;
  private Process child;
  private volatile bool stopping;

  public SwitchyardServiceHost(string[] command) {
    this.command = command;
    ServiceName = "SwitchyardAgent";
    CanShutdown = true;
  }

  public static void Main(string[] command) { ServiceBase.Run(new SwitchyardServiceHost(command)); }

  protected override void OnStart(string[] unused) {
    StringBuilder rest = new StringBuilder();
    for (int at = 1; at < command.Length; at++) rest.Append(" \"").Append(command[at]).Append('"');
    ProcessStartInfo start = new ProcessStartInfo(command[0], rest.ToString());
    start.UseShellExecute = false;
    start.CreateNoWindow = true;
    child = Process.Start(start);
    child.EnableRaisingEvents = true;
    child.Exited += delegate { if (!stopping) Environment.Exit(1); };
    if (child.HasExited) Environment.Exit(1);
  }

  protected override void OnStop() {
    stopping = true;
    try { child.Kill(); child.WaitForExit(10000); } catch (InvalidOperationException) { }
  }

  protected override void OnShutdown() { OnStop(); }
}
'@

function Invoke-ControlPlane([string[]]$Arguments) {
  & $Curl -fsS --proto '=https' --noproxy '*' -k --pinnedpubkey $Pin --connect-timeout 10 @Arguments
}

# Of the step that runs. The way to the control plane may be gone; the work does not depend on it.
function Send-Report([string]$State, [string]$Detail) {
  if ($DryRun -or $From -eq '' -or $script:Step -eq '') { return }
  $said = 'null'
  if ($Detail -ne '') { $said = '"' + $Detail + '"' }
  $file = [IO.Path]::GetTempFileName()
  try {
    $json = '{"v":1,"code":"' + $script:Step + '","state":"' + $State + '","percent":null,"detail":' + $said + '}'
    [IO.File]::WriteAllText($file, $json)
    Invoke-ControlPlane @('-s', '--max-time', '15', '-o', 'NUL', '-H', 'content-type: application/json', '--data-binary', "@$file", "$From/step")
  } catch {
  } finally {
    Remove-Item -Force $file
  }
}

function Enter-Step([string]$Code, [string]$Title) {
  $script:Step = $Code
  Write-Host $Title
  Send-Report 'running' ''
}

function Exit-Step([string]$Detail) {
  Send-Report 'done' $Detail
  $script:Step = ''
}

function Stop-Step([string]$Detail, [string]$Sentence) {
  Send-Report 'failed' $Detail
  $script:Step = ''
  throw "Switchyard: $Sentence"
}

function Test-Sha([string]$File, [string]$Sha256) {
  (Test-Path -LiteralPath $File) -and ((Get-FileHash -Algorithm SHA256 -LiteralPath $File).Hash -eq $Sha256)
}

# Goes on where a broken download ended; what is not the file that this release was built with is removed.
function Get-Checked([string]$Url, [string]$Sha256, [bool]$Pinned) {
  New-Item -ItemType Directory -Force -Path $Cache | Out-Null
  $file = Join-Path $Cache $Sha256
  if (Test-Sha $file $Sha256) { return $file }
  foreach ($attempt in 1, 2) {
    if (-not (Test-Sha "$file.part" $Sha256)) {
      if ($Pinned) {
        Invoke-ControlPlane @('-C', '-', '-o', "$file.part", $Url)
      } else {
        $protocol = '=https'
        if ($Mirror -ne '') { $protocol = '=https,http' }
        & $Curl -fsSL --proto $protocol --proto-redir $protocol --connect-timeout 20 --retry 2 '-C' '-' -o "$file.part" $Url
      }
      $status = $LASTEXITCODE
      if ($status -ne 0 -and @(22, 33, 36) -notcontains $status) {
        Stop-Step 'download_failed' 'the download failed. Run the same command again: it goes on from there.'
      }
    }
    if (Test-Sha "$file.part" $Sha256) {
      Move-Item -Force -LiteralPath "$file.part" -Destination $file
      return $file
    }
    Remove-Item -Force -ErrorAction SilentlyContinue -LiteralPath "$file.part"
  }
  Stop-Step 'checksum_wrong' 'what was downloaded is not what this release was built with. Nothing of it was used.'
}

function Test-Part([string]$Name, [string]$Sha256) {
  $mark = Join-Path $Here "$Name\checked"
  (Test-Path -LiteralPath $mark) -and ((Get-Content -LiteralPath $mark -TotalCount 1) -eq $Sha256)
}

function New-Part {
  New-Item -ItemType Directory -Force -Path $Here | Out-Null
  $new = Join-Path $Here 'new'
  if (Test-Path -LiteralPath $new) { Remove-Item -Recurse -Force -LiteralPath $new }
  New-Item -ItemType Directory -Path $new | Out-Null
  $new
}

function Set-Part([string]$New, [string]$Name, [string]$Sha256) {
  # Files that run cannot be replaced.
  if ($null -ne (Get-Service -Name $Service -ErrorAction SilentlyContinue)) { Stop-Service -Force -Name $Service }
  [IO.File]::WriteAllText((Join-Path $New 'checked'), "$Sha256`n")
  $place = Join-Path $Here $Name
  if (Test-Path -LiteralPath $place) { Remove-Item -Recurse -Force -LiteralPath $place }
  Move-Item -LiteralPath $New -Destination $place
}

function Read-System {
  if (-not (Test-Path -LiteralPath $Curl)) { throw 'Switchyard: curl.exe is missing. This needs Windows 10 (1803) or later.' }
  Invoke-ControlPlane @('--max-time', '20', '-o', 'NUL', "$From/options")
  switch ($LASTEXITCODE) {
    0 { }
    90 { throw 'Switchyard: what answers there does not have the key of your control plane. Nothing was installed.' }
    22 { throw 'Switchyard: the control plane does not know this command any more: it was used, withdrawn or has expired. Make a new one.' }
    default { throw 'Switchyard: the control plane cannot be reached from this machine. Nothing was installed.' }
  }
  Enter-Step 'system' 'System: looks at this machine.'
  if (-not (Test-Path -LiteralPath $Tar)) { Stop-Step 'tool_missing' 'tar.exe is missing. This needs Windows 10 (1803) or later.' }
  # The runtime for x64 also runs on ARM machines with Windows 11.
  if (-not [Environment]::Is64BitOperatingSystem) { Stop-Step 'arch_unsupported' 'this needs a 64-bit system.' }
  $drive = New-Object IO.DriveInfo ([IO.Path]::GetPathRoot($Base))
  if (-not (Test-Part 'node' $NodeSha256) -and $drive.AvailableFreeSpace -lt $NeededBytes) {
    Stop-Step 'disk_full' 'the disk has less than 600 MB left.'
  }
  Exit-Step ''
}

function Install-Runtime {
  Enter-Step 'runtime' "Runtime: Node.js $NodeVersion."
  if ((Test-Part 'node' $NodeSha256)) { Exit-Step 'already'; return }
  if ($DryRun) { Write-Host "  would download $NodeUrl and put it into $Here\node"; return }
  $file = Get-Checked $NodeUrl $NodeSha256 $false
  $new = New-Part
  & $Tar -xzf $file -C $new
  if ($LASTEXITCODE -ne 0) { Stop-Step 'unpack_failed' 'the runtime cannot be unpacked.' }
  Move-Item -LiteralPath (Join-Path $new "$NodeFolder\bin\node.exe") -Destination (Join-Path $new 'node.exe')
  Remove-Item -Recurse -Force -LiteralPath (Join-Path $new $NodeFolder)
  if ((& (Join-Path $new 'node.exe') --version) -ne "v$NodeVersion") { Stop-Step 'system_unsupported' 'the runtime does not start on this system.' }
  Add-Type -TypeDefinition $HostSource -ReferencedAssemblies 'System.ServiceProcess' -OutputType ConsoleApplication -OutputAssembly (Join-Path $new 'service-host.exe')
  Set-Part $new 'node' $NodeSha256
  Exit-Step ''
}

function Install-Agent {
  Enter-Step 'agent' "Agent: version $AgentVersion, from the control plane."
  if (Test-Part 'agent' $AgentSha256) { Exit-Step 'already'; return }
  if ($DryRun) { Write-Host "  would fetch it and put it into $Here\agent"; return }
  $file = Get-Checked "$From/agent" $AgentSha256 $true
  $new = New-Part
  & $Tar -xzf $file -C $new
  if ($LASTEXITCODE -ne 0) { Stop-Step 'unpack_failed' 'the agent cannot be unpacked.' }
  Set-Part $new 'agent' $AgentSha256
  Copy-Item -Force -LiteralPath $PSCommandPath -Destination (Join-Path $Base 'install.ps1')
  Exit-Step ''
}

# The account is the service's own (NT SERVICE\SwitchyardAgent): Windows makes it with the service. Here it gets its folder and its port.
function New-Place {
  Enter-Step 'account' "Account: the service's own."
  if ($DryRun) { Write-Host "  would make $Data and open TCP port $Port to the agent"; return }
  New-Item -ItemType Directory -Force -Path $Data | Out-Null
  Get-NetFirewallRule -Name $Service -ErrorAction SilentlyContinue | Remove-NetFirewallRule
  New-NetFirewallRule -Name $Service -DisplayName 'Switchyard agent' -Direction Inbound -Action Allow -Protocol TCP -LocalPort $Port -Program (Join-Path $Here 'node\node.exe') | Out-Null
  Exit-Step ''
}

function Invoke-Enrol {
  if ($DryRun -and -not ((Test-Part 'node' $NodeSha256) -and (Test-Part 'agent' $AgentSha256))) {
    Write-Host "Engine: would use Ollama at $Ollama."
    Write-Host 'Model: would pull the model that was asked for, if there is one.'
    Write-Host "Service: would run the agent on port $Port, started with the system."
    Write-Host 'Join: would tell the control plane that this machine is ready.'
    return
  }
  $arguments = @('--report-exclude-env', (Join-Path $Here 'agent\index.js'), 'enrol', '--from', $From, '--pin', $Pin, '--port', "$Port", '--ollama', $Ollama, '--data-dir', $Data)
  if ($Mirror -ne '') { $arguments += @('--mirror', $Mirror) }
  if ($DryRun) { $arguments += '--dry-run' }
  & (Join-Path $Here 'node\node.exe') @arguments
  if ($LASTEXITCODE -ne 0) { throw 'Switchyard: the machine was not added. Run the same command again: what is done is not done twice.' }
  if (-not $DryRun) {
    Get-ChildItem -Directory -LiteralPath $Base | Where-Object { $_.FullName -ne $Here } | Remove-Item -Recurse -Force
  }
}

function Remove-All {
  Write-Host 'Takes away the agent, its service, account and data.'
  if ($DryRun) {
    Write-Host "  would stop and remove the service $Service, its account and its firewall rule"
    Write-Host "  would remove $Data and $Base"
  } else {
    if ($null -ne (Get-Service -Name $Service -ErrorAction SilentlyContinue)) {
      Stop-Service -Force -Name $Service
      & sc.exe delete $Service | Out-Null
    }
    Get-NetFirewallRule -Name $Service -ErrorAction SilentlyContinue | Remove-NetFirewallRule
    foreach ($folder in $Data, $Base) {
      if (Test-Path -LiteralPath $folder) { Remove-Item -Recurse -Force -LiteralPath $folder }
    }
  }
  Write-Host 'Ollama and its models stay: other programs may use them. Remove the machine in the console, too (Fleet).'
}

function Main {
  if ($Port -lt 1 -or $Port -gt 65535) { throw 'Switchyard: -Port takes a number from 1 to 65535.' }
  if (-not $DryRun) {
    $user = New-Object Security.Principal.WindowsPrincipal ([Security.Principal.WindowsIdentity]::GetCurrent())
    if (-not $user.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)) {
      throw 'Switchyard: administrator rights are needed to install a service. Open PowerShell as administrator and run the command there.'
    }
  }
  if ($Uninstall) { Remove-All; return }
  if ($From -notmatch '^https://[A-Za-z0-9._:\[\]-]+/e/[A-Za-z0-9_-]{22}/?$' -or $Pin -notmatch '^sha256//[A-Za-z0-9+/]{43}=$') {
    throw 'Switchyard: the address or the pin of the control plane is missing. Copy the whole command from the console.'
  }
  $script:From = $From.TrimEnd('/')
  if ($Mirror -ne '') { $script:NodeUrl = $Mirror.TrimEnd('/') + '/' + $NodeUrl.Split('/')[-1] }
  try {
    Read-System
    Install-Runtime
    Install-Agent
    New-Place
    Invoke-Enrol
    if (-not $DryRun -and (Test-Path -LiteralPath $Cache)) { Remove-Item -Recurse -Force -LiteralPath $Cache }
  } catch {
    if ($script:Step -ne '') { Send-Report 'failed' 'unexpected' }
    throw
  }
}

try { Main } catch { Write-Host $_.Exception.Message -ForegroundColor Red; exit 1 }
