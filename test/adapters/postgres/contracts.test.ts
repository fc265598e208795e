import { epochsContract } from "../../contracts/epochs.contract.ts";
import { figureStoreContract } from "../../contracts/figure-store.contract.ts";
import { keyStoreContract } from "../../contracts/key-store.contract.ts";
import { laneStoreContract } from "../../contracts/lane-store.contract.ts";
import { leaseStoreContract } from "../../contracts/lease-store.contract.ts";
import { queryStoreContract } from "../../contracts/query-store.contract.ts";
import { sightStoreContract } from "../../contracts/sight-store.contract.ts";
import { subscriberStoreContract } from "../../contracts/subscriber-store.contract.ts";
import { createPostgresSubject } from "./postgres-subject.ts";

const unnamed = () => createPostgresSubject({ preparedStatements: "off" });

leaseStoreContract("PostgreSQL", createPostgresSubject);
laneStoreContract("PostgreSQL", createPostgresSubject);
queryStoreContract("PostgreSQL", createPostgresSubject);
sightStoreContract("PostgreSQL", createPostgresSubject);
figureStoreContract("PostgreSQL", createPostgresSubject);
epochsContract("PostgreSQL", createPostgresSubject);

keyStoreContract("PostgreSQL", createPostgresSubject);
subscriberStoreContract("PostgreSQL", createPostgresSubject);

leaseStoreContract("PostgreSQL, unnamed statements", unnamed);
laneStoreContract("PostgreSQL, unnamed statements", unnamed);
queryStoreContract("PostgreSQL, unnamed statements", unnamed);
