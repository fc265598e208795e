import { epochsContract } from "../../../contracts/epochs.contract.ts";
import { leaseStoreContract } from "../../../contracts/lease-store.contract.ts";
import { createPostgresSubject } from "../postgres-subject.ts";

leaseStoreContract("PostgreSQL", createPostgresSubject);
epochsContract("PostgreSQL", createPostgresSubject);
