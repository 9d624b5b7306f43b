import type { Sentence } from './sentence.ts';

/** Store, vault, settings, and the control plane itself. */
export const HOUSE = {
  started: { en: 'Serving at {endpoint}.', fr: 'En service à l’adresse {endpoint}.' },
  listens_openly: {
    en: 'Every machine that reaches this one can call it on {address}, and keys and texts cross the network unencrypted. Enter 127.0.0.1 under Settings, Listen on, or put a proxy with TLS in front.',
    fr: 'Toute machine qui atteint celle-ci peut l’appeler sur {address}, et clés et textes traversent le réseau sans chiffrement. Saisissez 127.0.0.1 sous Réglages, Écouter sur, ou placez un proxy TLS devant.',
  },
  listens_address_absent: {
    en: 'This machine has no address {address}, so the endpoint is on 127.0.0.1 alone. Correct it under Settings, Listen on, and start again.',
    fr: 'Cette machine n’a pas l’adresse {address} : le point d’accès est sur 127.0.0.1 seulement. Corrigez-la sous Réglages, Écouter sur, puis redémarrez.',
  },
  listens_address_unknown: {
    en: 'The name {address} leads to no address, so the endpoint is on 127.0.0.1 alone. Correct it under Settings, Listen on, and start again.',
    fr: 'Le nom {address} ne mène à aucune adresse : le point d’accès est sur 127.0.0.1 seulement. Corrigez-le sous Réglages, Écouter sur, puis redémarrez.',
  },
  title_listens_openly: {
    en: 'Other machines can reach this one, without encryption',
    fr: 'D’autres machines peuvent atteindre celle-ci, sans chiffrement',
  },
  title_listens_elsewhere: {
    en: 'The endpoint is not where it should be',
    fr: 'Le point d’accès n’est pas là où il devrait être',
  },
  clock_gap: {
    en: 'The machine slept or its clock jumped by {gapMs}; machines are asked anew.',
    fr: 'La machine était en veille ou son horloge a sauté de {gapMs} ; les machines sont interrogées de nouveau.',
  },
  request_fault: {
    en: 'A request met a fault of Switchyard itself.',
    fr: 'Une requête a rencontré une erreur de Switchyard lui-même.',
  },
  store_recovered: {
    en: 'The database can be written again.',
    fr: 'La base de données est de nouveau accessible en écriture.',
  },
  store_last_good: {
    en: 'Serving goes on from the last good configuration; changes are refused.',
    fr: 'Le service continue avec la dernière bonne configuration ; les modifications sont refusées.',
  },
  store_degraded: {
    en: 'The database cannot be written; the last good configuration serves and changes are refused.',
    fr: 'La base de données n’est pas accessible en écriture ; la dernière bonne configuration sert et les modifications sont refusées.',
  },
  store_thread_stopped: {
    en: 'The database thread stopped and is being started again.',
    fr: 'Le service de la base de données s’est arrêté et redémarre.',
  },
  store_locked: {
    en: 'Another program holds the database locked. Changes are refused until it lets go.',
    fr: 'Un autre programme verrouille la base de données. Les modifications sont refusées d’ici là.',
  },
  store_full: {
    en: 'The disk, or the size allowed for the database, is full. Changes are refused until there is room.',
    fr: 'Le disque, ou la taille permise pour la base de données, est plein. Les modifications sont refusées tant qu’il n’y a pas de place.',
  },
  store_damaged: {
    en: 'The database file is damaged. Changes are refused; stop Switchyard and restore a backup.',
    fr: 'Le fichier de la base de données est abîmé. Les modifications sont refusées ; arrêtez Switchyard et restaurez une sauvegarde.',
  },
  store_unreachable: {
    en: 'The database file cannot be read or written. Changes are refused; look at the disk and its permissions.',
    fr: 'Le fichier de la base de données ne peut être ni lu ni écrit. Les modifications sont refusées ; vérifiez le disque et ses droits.',
  },
  store_read_only: {
    en: 'The database file is read-only. Changes are refused until it can be written.',
    fr: 'Le fichier de la base de données est en lecture seule. Les modifications sont refusées d’ici là.',
  },
  store_refused: {
    en: 'The database refused a value that breaks its rules.',
    fr: 'La base de données a refusé une valeur contraire à ses règles.',
  },
  vault_key_file: {
    en: 'The vault is sealed with a key file that lies beside the database: who copies the folder has both. Set SWITCHYARD_KEYRING to keep the key elsewhere.',
    fr: 'Le coffre est scellé par un fichier de clé placé à côté de la base de données : qui copie le dossier a les deux. Définissez SWITCHYARD_KEYRING pour garder la clé ailleurs.',
  },
  vault_basic_text: {
    en: 'This desktop has no keychain (basic_text): the vault’s key can be read by every program of yours. Set SWITCHYARD_KEYRING to keep it elsewhere.',
    fr: 'Ce bureau n’a pas de trousseau (basic_text) : tous vos programmes peuvent lire la clé du coffre. Définissez SWITCHYARD_KEYRING pour la garder ailleurs.',
  },
  vault_two_keyrings: {
    en: 'SWITCHYARD_KEYRING and SWITCHYARD_KEYRING_FILE are both set. Set one.',
    fr: 'SWITCHYARD_KEYRING et SWITCHYARD_KEYRING_FILE sont définis tous les deux. N’en gardez qu’un.',
  },
  vault_no_file: {
    en: 'The file in SWITCHYARD_KEYRING_FILE cannot be read.',
    fr: 'Le fichier indiqué par SWITCHYARD_KEYRING_FILE est illisible.',
  },
  vault_in_keychain: {
    en: 'The key of this data folder is in the keychain of the desktop app. Start that one, or choose another folder with --data-dir.',
    fr: 'La clé de ce dossier de données est dans le trousseau de l’application de bureau. Lancez celle-ci, ou choisissez un autre dossier avec --data-dir.',
  },
  vault_keychain_shut: {
    en: 'The keychain of this machine does not open the key of this data folder. Unlock it, or start as the user who made it.',
    fr: 'Le trousseau de cette machine n’ouvre pas la clé de ce dossier de données. Déverrouillez-le, ou démarrez sous l’utilisateur qui l’a créé.',
  },
  vault_wrong_key: {
    en: 'Key version {version} of the keyring is not the key that sealed this database. Give that key back, or use a new key under a higher version and pair the machines again.',
    fr: 'La version {version} de la clé du trousseau n’est pas celle qui a scellé cette base de données. Remettez celle-ci, ou utilisez une nouvelle clé sous une version plus haute et associez de nouveau les machines.',
  },
  vault_lacks_key: {
    en: 'A sealed record needs key version {version}, which the keyring lacks.',
    fr: 'Un enregistrement scellé demande la version {version} de la clé, absente du trousseau.',
  },
  store_unlockable: {
    en: 'The data folder cannot be locked. Is it on a network drive?',
    fr: 'Le dossier de données ne peut pas être verrouillé. Est-il sur un disque réseau ?',
  },
  store_used: {
    en: 'Another Switchyard uses this data folder. Stop it, or give this one a folder of its own with --data-dir.',
    fr: 'Un autre Switchyard utilise ce dossier de données. Arrêtez-le, ou donnez à celui-ci son propre dossier avec --data-dir.',
  },
  store_used_by: {
    en: 'Another Switchyard (process {process}) uses this data folder. Stop it, or give this one a folder of its own with --data-dir.',
    fr: 'Un autre Switchyard (processus {process}) utilise ce dossier de données. Arrêtez-le, ou donnez à celui-ci son propre dossier avec --data-dir.',
  },
  store_of_newer: {
    en: 'A newer Switchyard wrote this database (format {version}, this one reads up to {newest}). Install that version again, or restore a backup.',
    fr: 'Un Switchyard plus récent a écrit cette base de données (format {version}, celui-ci lit jusqu’à {newest}). Réinstallez cette version, ou restaurez une sauvegarde.',
  },
  store_no_folder: {
    en: 'The data folder {folder} cannot be made, read or written. Mend its permissions or choose another with --data-dir.',
    fr: 'Le dossier de données {folder} ne peut pas être créé, lu ou écrit. Corrigez ses droits ou choisissez-en un autre avec --data-dir.',
  },
  store_node_key: {
    en: 'The key of machine "{name}" does not open with this keyring. Give the keyring that sealed it, or pair it again.',
    fr: 'La clé de la machine « {name} » ne s’ouvre pas avec ce trousseau. Fournissez le trousseau qui l’a scellée, ou associez-la de nouveau.',
  },
  store_rebuilt: {
    en: 'The database was missing. Its configuration came back from the last good copy; its history is lost.',
    fr: 'La base de données manquait. Sa configuration vient de la dernière bonne copie ; son historique est perdu.',
  },
  store_role_unread: {
    en: 'The settings of role {role} cannot be understood. It is switched off until they are saved again.',
    fr: 'Les réglages du rôle {role} sont incompréhensibles. Il est désactivé jusqu’à leur prochain enregistrement.',
  },
  store_budget_unread: {
    en: 'What was spent in the cloud cannot be read. The cloud is paused; resume it when you have looked at the spending caps.',
    fr: 'Ce qui a été dépensé dans le cloud est illisible. Le cloud est suspendu ; reprenez-le après avoir vérifié les plafonds de dépense.',
  },
  store_settings_unread: {
    en: 'The settings "{settings}" cannot be read and are ignored.',
    fr: 'Les réglages « {settings} » sont illisibles et ignorés.',
  },
  import_not_json: { en: 'This file is not JSON.', fr: 'Ce fichier n’est pas du JSON.' },
  import_not_settings: {
    en: 'This file is not an export of settings.',
    fr: 'Ce fichier n’est pas un export de réglages.',
  },
  import_settings_left: {
    en: 'General settings of another version were left alone.',
    fr: 'Les réglages généraux d’une autre version n’ont pas été repris.',
  },
  import_settings_refused: {
    en: 'General settings were left alone:',
    fr: 'Les réglages généraux n’ont pas été repris.',
  },
  import_leaves: {
    en: 'With this file texts of {roles} would leave the network, which so far may not. Nothing was changed. Repeat it with confirm: true if that is meant.',
    fr: 'Avec ce fichier, des textes de {roles} sortiraient du réseau, ce qui est exclu aujourd’hui. Rien n’a changé. Recommencez avec confirm: true si c’est voulu.',
  },
  import_role_left: {
    en: 'Settings of {role} do not fit this version.',
    fr: 'Les réglages de {role} ne conviennent pas à cette version.',
  },
  import_role_refused: {
    en: 'Settings of {role} were left alone:',
    fr: 'Les réglages de {role} n’ont pas été repris.',
  },
  not_desktop: {
    en: 'This is not the desktop app. Update it the way it was installed.',
    fr: 'Ceci n’est pas l’application de bureau. Mettez-la à jour de la façon dont elle a été installée.',
  },
  pairing_underway: {
    en: 'This address is being paired right now.',
    fr: 'Cette adresse est justement en cours d’association.',
  },
  own_agent: {
    en: 'That is the agent of this very machine.',
    fr: 'C’est l’agent de cette machine-ci.',
  },
  own_agent_stays: {
    en: 'The agent of this machine cannot be removed. Start with --no-embedded-agent instead.',
    fr: 'L’agent de cette machine ne peut pas être retiré. Démarrez plutôt avec --no-embedded-agent.',
  },
  not_an_agent: {
    en: 'What answers at that address does not speak as an agent does. Check the address and the version.',
    fr: 'Ce qui répond à cette adresse ne parle pas comme un agent. Vérifiez l’adresse et la version.',
  },
  pairing_not_stored: {
    en: 'The agent could not store the pairing. Make room on its disk and pair again; the join code still holds.',
    fr: 'L’agent n’a pas pu enregistrer l’association. Faites de la place sur son disque et recommencez ; le code reste valable.',
  },
  role_unserved: {
    en: 'Requests for it are refused.',
    fr: 'Ses requêtes sont refusées.',
  },
  role_no_cloud_model: {
    en: 'It works in the cloud alone and no cloud model is chosen for it.',
    fr: 'Il ne travaille que dans le cloud et aucun modèle cloud n’est choisi pour lui.',
  },
  cap_day: {
    en: 'Its cap of {capUsd} a day has no room for another call: nothing paid starts until {untilOnMs}. Raise the cap, or wait.',
    fr: 'Son plafond de {capUsd} par jour n’a plus de place pour un appel : rien de payant ne part avant {untilOnMs}. Relevez-le, ou attendez.',
  },
  cap_month: {
    en: 'Its cap of {capUsd} a month has no room for another call: nothing paid starts until {untilOnMs}. Raise the cap, or wait.',
    fr: 'Son plafond de {capUsd} par mois n’a plus de place pour un appel : rien de payant ne part avant {untilOnMs}. Relevez-le, ou attendez.',
  },
  cap_no_price: {
    en: 'The price of its cloud model is not known, and nothing without a price starts under a cap ({capUsd}). Choose another model, or lift the cap.',
    fr: 'Le prix de son modèle cloud est inconnu, et rien sans prix ne part sous un plafond ({capUsd}). Choisissez un autre modèle, ou retirez le plafond.',
  },
  nobody_offers: {
    en: 'No machine of the fleet offers a model for this role. Start an engine and add its machine (POST /admin/nodes), or set a cloud model and key.',
    fr: 'Aucune de vos machines n’offre de modèle pour ce rôle. Lancez un moteur et ajoutez sa machine, ou choisissez un modèle cloud et donnez une clé.',
  },
} as const satisfies Record<string, Sentence>;

/** Titles of what needs a person; the sentence beside one has a code of its own. */
export const TITLES = {
  title_store_degraded: {
    en: 'The database cannot be written',
    fr: 'La base de données n’est pas accessible en écriture',
  },
  title_store_problem: {
    en: 'Something about the data folder',
    fr: 'Un point à voir dans le dossier de données',
  },
  title_discovery: {
    en: 'Machines may not be found by themselves',
    fr: 'Des machines peuvent ne pas être trouvées automatiquement',
  },
  title_node_degraded: { en: '{name} is degraded', fr: '{name} est dégradée' },
  title_node_unreachable: { en: '{name} is unreachable', fr: '{name} est injoignable' },
  title_node_unknown: { en: '{name} is unknown', fr: 'L’état de {name} est inconnu' },
  title_node_error: { en: '{name} has an error', fr: '{name} est en erreur' },
  title_gate: {
    en: '{model} on {name} gets no texts of {role}',
    fr: '{model} sur {name} ne reçoit aucun texte de {role}',
  },
  title_role_unserved: { en: 'Nothing serves {roles}', fr: 'Rien ne sert {roles}' },
  title_cap: { en: '{role} has reached its spend cap', fr: '{role} a atteint son plafond de dépense' },
  title_cap_project: {
    en: 'The project {name} has reached its spend cap',
    fr: 'Le projet {name} a atteint son plafond de dépense',
  },
  title_space_anchor_lost: { en: 'The space of {role} is lost', fr: 'L’espace de {role} est perdu' },
  title_space_unfounded: { en: '{role} needs a founder', fr: '{role} attend un fondateur' },
  title_cloud_no_key: { en: 'No cloud key yet', fr: 'Pas encore de clé cloud' },
  title_cloud_key_missing: { en: 'Key missing on {name}', fr: 'Clé absente sur {name}' },
  title_cloud_key_stale: { en: 'Old key on {name}', fr: 'Clé ancienne sur {name}' },
  title_cloud_refused: { en: 'Key refused for {name}', fr: 'Clé refusée pour {name}' },
  title_cloud_off: { en: 'The cloud account cannot be used', fr: 'Le compte cloud est inutilisable' },
} as const satisfies Record<string, Sentence>;
