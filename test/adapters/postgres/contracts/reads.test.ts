import { figureStoreContract } from "../../../contracts/figure-store.contract.ts";
import { keyStoreContract } from "../../../contracts/key-store.contract.ts";
import { queryStoreContract } from "../../../contracts/query-store.contract.ts";
import { sightStoreContract } from "../../../contracts/sight-store.contract.ts";
import { subscriberStoreContract } from "../../../contracts/subscriber-store.contract.ts";
import { createPostgresSubject } from "../postgres-subject.ts";

queryStoreContract("PostgreSQL", createPostgresSubject);
sightStoreContract("PostgreSQL", createPostgresSubject);
figureStoreContract("PostgreSQL", createPostgresSubject);
keyStoreContract("PostgreSQL", createPostgresSubject);
subscriberStoreContract("PostgreSQL", createPostgresSubject);
