import type { ServicePlan } from './service.ts';

export const LABEL = 'dev.switchyard.agent';

const escaped = (text: string) =>
  text.replace(/[&<>]/g, (sign) => (sign === '&' ? '&amp;' : sign === '<' ? '&lt;' : '&gt;'));

/** No core dumps, files for their owner alone; started with the system and again when it ends. */
export function agentPlist({ command, account, mark }: ServicePlan): string {
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
    `<!-- ${mark} -->`,
    '<plist version="1.0">',
    '<dict>',
    `  <key>Label</key><string>${LABEL}</string>`,
    '  <key>ProgramArguments</key>',
    '  <array>',
    ...command.map((text) => `    <string>${escaped(text)}</string>`),
    '  </array>',
    `  <key>UserName</key><string>${escaped(account)}</string>`,
    `  <key>GroupName</key><string>${escaped(account)}</string>`,
    '  <key>RunAtLoad</key><true/>',
    '  <key>KeepAlive</key><true/>',
    '  <key>ThrottleInterval</key><integer>5</integer>',
    '  <key>Umask</key><integer>63</integer>',
    '  <key>HardResourceLimits</key><dict><key>Core</key><integer>0</integer></dict>',
    '  <key>SoftResourceLimits</key><dict><key>Core</key><integer>0</integer></dict>',
    '</dict>',
    '</plist>',
    '',
  ].join('\n');
}
