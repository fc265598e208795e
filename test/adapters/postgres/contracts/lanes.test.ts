import { epochsContract } from "../../../contracts/epochs.contract.ts";
import { laneStoreContract } from "../../../contracts/lane-store.contract.ts";
import { leaseStoreContract } from "../../../contracts/lease-store.contract.ts";
import { createPostgresSubject } from "../postgres-subject.ts";

leaseStoreContract("PostgreSQL", createPostgresSubject);
laneStoreContract("PostgreSQL", createPostgresSubject);
epochsContract("PostgreSQL", createPostgresSubject);
