/** Why an agent may not be found, told to control planes as an agent event while it holds. */
export const NOTES = {
  discovery_port_held:
    'Another program holds UDP port 5353 for itself, so this machine is not announced by mDNS. It still answers broadcast queries.',
  discovery_forbidden: 'This system does not let the agent announce itself by mDNS. Add the machine by its address.',
  discovery_failed: 'The mDNS socket failed and is opened again. The machine can be added by its address.',
  discovery_name_taken: 'Another machine announces itself under the name of this one; the agent took a new name.',
  discovery_query_port_held:
    'UDP port 7412 cannot be opened, so broadcast queries are not answered. The machine can be added by its address.',
} as const;

export type NoteCode = keyof typeof NOTES;

/** Called when a note begins to hold (true) or holds no longer. */
export type OnNote = (code: NoteCode, holds: boolean) => void;
