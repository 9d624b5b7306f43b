import type { Sentence } from './sentence.ts';

/** Steps of a machine that is being added, in the order of the installation; the codes are those of agent/wire/enrolment.ts. */
export const ENROLMENT_STEPS = {
  enrol_system: { en: 'Look at the system', fr: 'Examiner le système' },
  enrol_runtime: { en: 'Fetch the runtime', fr: 'Récupérer l’environnement d’exécution' },
  enrol_agent: { en: 'Fetch the agent', fr: 'Récupérer l’agent' },
  enrol_account: { en: 'Make an account of its own', fr: 'Créer un compte dédié' },
  enrol_engine: { en: 'Install or adopt the engine', fr: 'Installer ou adopter le moteur' },
  enrol_model: { en: 'Pull the model', fr: 'Télécharger le modèle' },
  enrol_service: { en: 'Set up the service', fr: 'Mettre en place le service' },
  enrol_join: { en: 'Join the fleet', fr: 'Rejoindre le parc' },
} as const satisfies Record<string, Sentence>;

/** What a step found, or why it failed and what to do. */
export const ENROLMENT_DETAILS = {
  enrol_already: { en: 'It was there already.', fr: 'C’était déjà fait.' },
  enrol_adopted: { en: 'The engine that runs there is used.', fr: 'Le moteur qui y tourne est utilisé.' },
  enrol_not_asked: { en: 'None was asked for.', fr: 'Rien n’a été demandé.' },
  enrol_system_unsupported: {
    en: 'The agent is not made for this operating system. Linux, macOS and Windows are.',
    fr: 'L’agent n’existe pas pour ce système. Il existe pour Linux, macOS et Windows.',
  },
  enrol_arch_unsupported: {
    en: 'There is no runtime for this processor. There is one for 64-bit x86, and for 64-bit ARM on Linux and macOS.',
    fr: 'Il n’y a pas d’environnement d’exécution pour ce processeur. Il y en a un pour x86 64 bits, et pour ARM 64 bits sous Linux et macOS.',
  },
  enrol_tool_missing: {
    en: 'A tool is missing on the machine; its terminal names it. Install it and run the same command again.',
    fr: 'Un outil manque sur la machine ; son terminal le nomme. Installez-le et relancez la même commande.',
  },
  enrol_not_root: {
    en: 'The command needs an administrator. Run it again as root, with sudo, or in an elevated PowerShell.',
    fr: 'La commande demande un administrateur. Relancez-la en root, avec sudo ou dans un PowerShell élevé.',
  },
  enrol_no_service_manager: {
    en: 'The machine has no service manager that is known. Start the agent there by hand and add it by address and join code.',
    fr: 'La machine n’a pas de gestionnaire de services connu. Lancez-y l’agent à la main et ajoutez-la par son adresse et son code d’association.',
  },
  enrol_disk_full: {
    en: 'The disk is too full. Make room and run the same command again.',
    fr: 'Le disque est trop plein. Faites de la place et relancez la même commande.',
  },
  enrol_download_failed: {
    en: 'A download broke off. Check the machine’s connection and run the same command again; it goes on where it stopped.',
    fr: 'Un téléchargement s’est interrompu. Vérifiez la connexion de la machine et relancez la même commande ; elle reprend où elle s’était arrêtée.',
  },
  enrol_checksum_wrong: {
    en: 'A download is not the file that this version expects; nothing of it was run. Look for a proxy that changes files, and run the same command again.',
    fr: 'Un téléchargement n’est pas le fichier attendu par cette version ; rien n’en a été exécuté. Cherchez un proxy qui modifie les fichiers, puis relancez la même commande.',
  },
  enrol_unpack_failed: {
    en: 'A download could not be unpacked. Its terminal says why; run the same command again.',
    fr: 'Un téléchargement n’a pas pu être décompressé. Le terminal dit pourquoi ; relancez la même commande.',
  },
  enrol_account_failed: {
    en: 'The account of the agent could not be made. The machine’s terminal says why.',
    fr: 'Le compte de l’agent n’a pas pu être créé. Le terminal de la machine dit pourquoi.',
  },
  enrol_engine_missing: {
    en: 'No engine runs there and none could be installed. Install Ollama on the machine and run the same command again.',
    fr: 'Aucun moteur n’y tourne et aucun n’a pu être installé. Installez Ollama sur la machine et relancez la même commande.',
  },
  enrol_engine_failed: {
    en: 'The engine does not answer. Start it on the machine and run the same command again.',
    fr: 'Le moteur ne répond pas. Démarrez-le sur la machine et relancez la même commande.',
  },
  enrol_engine_old: {
    en: 'The Ollama that runs there is too old. Update it to 0.17.1 or later and run the same command again.',
    fr: 'L’Ollama qui y tourne est trop ancien. Mettez-le à jour vers 0.17.1 ou plus récent et relancez la même commande.',
  },
  enrol_model_unknown: {
    en: 'The engine knows no model of that name. Withdraw this command and make one with another model.',
    fr: 'Le moteur ne connaît aucun modèle de ce nom. Retirez cette commande et créez-en une avec un autre modèle.',
  },
  enrol_model_failed: {
    en: 'The model could not be pulled. Check the machine’s connection and disk, and run the same command again.',
    fr: 'Le modèle n’a pas pu être téléchargé. Vérifiez la connexion et le disque de la machine, puis relancez la même commande.',
  },
  enrol_port_taken: {
    en: 'Another program listens on the agent’s port 7412 there. Stop it and run the same command again.',
    fr: 'Un autre programme y écoute sur le port 7412 de l’agent. Arrêtez-le et relancez la même commande.',
  },
  enrol_service_failed: {
    en: 'The service did not start. Its journal on the machine says why.',
    fr: 'Le service n’a pas démarré. Son journal sur la machine dit pourquoi.',
  },
  enrol_agent_not_ready: {
    en: 'The agent was set up but does not answer. Its journal on the machine says why.',
    fr: 'L’agent est en place mais ne répond pas. Son journal sur la machine dit pourquoi.',
  },
  enrol_join_failed: {
    en: 'The machine could not ask to join. Run the same command again.',
    fr: 'La machine n’a pas pu demander son association. Relancez la même commande.',
  },
  enrol_interrupted: {
    en: 'It was interrupted on the machine. Run the same command again; it goes on where it stopped.',
    fr: 'L’installation a été interrompue sur la machine. Relancez la même commande ; elle reprend où elle s’était arrêtée.',
  },
  enrol_unexpected: {
    en: 'Something unexpected happened; the machine’s terminal says what. Run the same command again.',
    fr: 'Un imprévu s’est produit ; le terminal de la machine dit lequel. Relancez la même commande.',
  },
} as const satisfies Record<string, Sentence>;

/** Of the control plane's side. */
export const ENROLMENT = {
  enrolment_made: {
    en: 'A command that adds a machine was made. It works until {untilAtMs}, once, and a restart of this control plane withdraws it.',
    fr: 'Une commande d’ajout de machine a été créée. Elle sert une fois, jusqu’à {untilAtMs} ; un redémarrage de ce centre de contrôle la retire.',
  },
  enrolment_joined: {
    en: '{name} was added by its one-time command, with base weight {weight}.',
    fr: '{name} a été ajoutée par sa commande à usage unique, avec un poids de base de {weight}.',
  },
  enrolment_failed: {
    en: 'Adding the machine at {address} failed.',
    fr: 'L’ajout de la machine à l’adresse {address} a échoué.',
  },
  enrolment_expired: {
    en: 'A command that adds a machine has expired. Make a new one.',
    fr: 'Une commande d’ajout de machine a expiré. Créez-en une nouvelle.',
  },
  enrolment_withdrawn: {
    en: 'A command that adds a machine was withdrawn.',
    fr: 'Une commande d’ajout de machine a été retirée.',
  },
  enrolment_ended_by_stop: {
    en: 'This control plane stops: the command that adds a machine is withdrawn. Make a new one after the start.',
    fr: 'Ce centre de contrôle s’arrête : la commande d’ajout de machine est retirée. Créez-en une nouvelle après le démarrage.',
  },
  enrolment_weight_lost: {
    en: 'The base weight of {name} could not be stored. Set it on its providers.',
    fr: 'Le poids de base de {name} n’a pas pu être enregistré. Réglez-le sur ses fournisseurs.',
  },
  no_installer: {
    en: 'This copy of Switchyard lacks the installer files (out/enrol). Run npm run build, or start the agent on that machine with npm run agent and add it by address and join code.',
    fr: 'Cette copie de Switchyard n’a pas les fichiers d’installation (out/enrol). Lancez npm run build, ou démarrez l’agent sur cette machine avec npm run agent et ajoutez-la par son adresse et son code d’association.',
  },
  no_network_address: {
    en: 'This computer has no network address that another machine could reach. Connect it to a network, or give the address to use.',
    fr: 'Cet ordinateur n’a aucune adresse réseau qu’une autre machine puisse joindre. Connectez-le à un réseau, ou indiquez l’adresse à utiliser.',
  },
  not_own_address: {
    en: 'This is not an address of this computer that another machine could reach. Its addresses: {addresses}.',
    fr: 'Ce n’est pas une adresse de cet ordinateur qu’une autre machine puisse joindre. Ses adresses : {addresses}.',
  },
  enrolment_port_refused: {
    en: 'The one-time address could not be opened on {address}. Give another address of this computer.',
    fr: 'L’adresse à usage unique n’a pas pu être ouverte sur {address}. Indiquez une autre adresse de cet ordinateur.',
  },
} as const satisfies Record<string, Sentence>;
