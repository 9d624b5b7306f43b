import { type Said, said, told } from '../domain/said.ts';
import { type Item, titled } from './health-item.ts';
import type { House } from './house.ts';

/** Not where it should listen: whoever calls from elsewhere finds nobody. */
function misplaced({ app }: House): Said | null {
  const place = app.listening()?.misplaced;
  return place ? said(`listens_${place.code}`, { address: place.address }) : null;
}

function exposed({ app }: House): Said | null {
  const listening = app.listening();
  return listening?.exposedInClear ? said('listens_openly', { address: listening.addresses.join(', ') }) : null;
}

/** What a person must know about where the endpoint listens; null: it is for this machine alone, and there. */
export const endpointNote = (house: House): Said | null => misplaced(house) ?? exposed(house);

export function endpointItems(house: House): Item[] {
  const elsewhere = misplaced(house);
  const open = exposed(house);
  const common = { page: 'settings', action: 'look' } as const;
  return [
    ...(elsewhere
      ? [
          {
            id: 'endpoint-misplaced',
            code: 'endpoint_misplaced',
            severity: 'error' as const,
            ...titled(said('title_listens_elsewhere')),
            ...told(elsewhere),
            needsPerson: true,
            ...common,
          },
        ]
      : []),
    // Somebody chose it, so nobody has to act; but it stays in sight for as long as it is so.
    ...(open
      ? [
          {
            id: 'endpoint-open',
            code: 'endpoint_open',
            severity: 'warn' as const,
            ...titled(said('title_listens_openly')),
            ...told(open),
            needsPerson: false,
            ...common,
          },
        ]
      : []),
  ];
}
