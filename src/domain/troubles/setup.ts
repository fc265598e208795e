/** Everything that `fencepost doctor` may find wrong before a node runs, with the remedy for each. */

/** Maximum number of a node's connections: its pools, the session lock and the connection for notifications. */
export const CONNECTIONS_OF_A_NODE = 20;

export const SETUP_TROUBLES = {
  NODE_VERSION: "use Node 20.19 or newer",
  CONFIGURATION: "set it in the environment or in fencepost.config.ts; docs/configuration.md has every setting",
  DATABASE: "see the server's log",
  DATABASE_LOGIN: "correct user and password in FENCEPOST_DATABASE_URL, or pg_hba.conf on the server",
  DATABASE_UNREACHABLE: "start it, or correct host and port in FENCEPOST_DATABASE_URL",
  DATABASE_MISSING: "create it (createdb), or correct its name in FENCEPOST_DATABASE_URL",
  DATABASE_FULL: `raise max_connections: each node opens up to ${CONNECTIONS_OF_A_NODE}`,
  DATABASE_RIGHTS: "run fencepost migrate --grant ROLE as the schema's owner",
  DATABASE_STANDBY: "use the primary's address in FENCEPOST_DATABASE_URL",
  DATABASE_VERSION: "use 15 or newer",
  SYNCHRONOUS_COMMIT: "set it to on for this role and database",
  FSYNC: "set fsync to on in postgresql.conf",
  DATABASE_ENCODING: "create it with ENCODING 'UTF8'",
  CONNECTIONS: `each node opens up to ${CONNECTIONS_OF_A_NODE}: raise max_connections, or close what others keep open`,
  POOLER: "set FENCEPOST_DIRECT_DATABASE_URL to the server itself",
  SCHEMA: "run the version that the database was brought to, or a newer one",
  MIGRATIONS: "start applies them, or fencepost migrate now",
  SCHEMA_RIGHTS: "run fencepost migrate --grant ROLE as the schema's owner, or GRANT CREATE ON DATABASE … TO this role",
  DATABASE_CLOCK: "let both follow NTP; leases go by the database's clock, logs by this one",
  RETENTION: "leave FENCEPOST_REQUEST_ID_RETENTION unset, unless no caller repeats so late",
  NODE_VERSIONS: "upgrade all nodes, one after the other: one release apart is the most that works",
  ADVERTISED_URL: "set FENCEPOST_HOST or FENCEPOST_ADVERTISE_URL to an address that other nodes reach",
  RPC_UNREACHABLE: "correct FENCEPOST_RPC_URL, or start the node there; a provider may want another key",
  CHAIN_ID:
    "set FENCEPOST_CHAIN_ID to the id of the chain that is meant, or correct FENCEPOST_RPC_URL; several chains go into `chains`",
  SINGLE_ENDPOINT: "name a second one, of another provider, in FENCEPOST_RPC_URL",
  ENDPOINT_SYNCING: "wait until it is done, or use another",
  ENDPOINT_BEHIND: "use another endpoint, or see why it does not follow",
  CHAIN_CLOCK: "let this machine's clock follow NTP; if it does, the chain or the endpoint has stopped",
  FINALITY_TAG: "set FENCEPOST_FINALITY=confirmations, or use another endpoint",
  ENDPOINT_METHODS: "use an endpoint that serves it; without eth_feeHistory, name fees with every transaction",
  ENDPOINT_LOGS: "Fencepost does without; programs that share the endpoint may not",
  PENDING_COUNT: "set FENCEPOST_NONCE_CHAIN_QUERY=latest",
  KEY_FILE_OPEN:
    "let its file belong to the user that runs nodes alone (chmod 600): a key that others can read is theirs",
  KEYSTORE_PASSWORD: "see that FENCEPOST_KEYSTORE_PASSWORD_FILE holds the password that the key was stored under",
  KEYS: "see the section of this kind of key in docs/signers.md",
  DOUBLE_KEY: "keep each key in one place: the other copy is one more that can leak",
  NO_BALANCE: "send it some: every transaction costs gas",
  OPEN_TO_ALL: "set FENCEPOST_API_KEYS, or FENCEPOST_HOST=127.0.0.1",
  PORT_TAKEN: "stop it, or choose another with FENCEPOST_PORT",
  PORT_FORBIDDEN: "choose a port from 1024 on with FENCEPOST_PORT",
  HOST: "correct FENCEPOST_HOST; 0.0.0.0 is all of them",
} as const satisfies Readonly<Record<string, string>>;
export type SetupCode = keyof typeof SETUP_TROUBLES;
