-- Whatever the chain does: more roads through the transition table, who decided a step, and payloads that are known by
-- their hash alone.
ALTER TABLE fencepost.history
  ADD COLUMN actor text,
  ADD COLUMN audit jsonb;

ALTER TABLE fencepost.attempt
  -- Somebody else's transaction at our nonce: followed like any other, never sent.
  ADD COLUMN is_foreign boolean NOT NULL DEFAULT false,
  ALTER COLUMN raw_transaction DROP NOT NULL,
  ADD CONSTRAINT attempt_bytes CHECK (raw_transaction IS NOT NULL OR kind = 'external'),
  ADD CONSTRAINT attempt_foreign CHECK (NOT is_foreign OR (kind = 'external' AND first_sent_at IS NULL));

ALTER TABLE fencepost.history
  DROP CONSTRAINT history_transition,
  ADD CONSTRAINT history_transition CHECK (
    (event || ' ' || coalesce(from_state, '-') || ' ' || state || '/' || coalesce(sub_state, '-')) IN (
      'accept - CREATED/-',
      'allocate - ALLOCATED/-',
      'allocate CREATED ALLOCATED/-',
      'refuse - FAILED_FINAL/REJECTED',
      'refuse CREATED FAILED_FINAL/REJECTED',
      'refuseReusedRequestId - FAILED_FINAL/REQUEST_ID_REUSED',
      'refuseReusedRequestId CREATED FAILED_FINAL/REQUEST_ID_REUSED',
      'sign ALLOCATED TRACKING/PENDING',
      'broadcast TRACKING TRACKING/BROADCAST',
      'resubmit TRACKING TRACKING/PENDING',
      'resubmit TRACKING TRACKING/BROADCAST',
      'resubmit TRACKING TRACKING/STALE',
      'resubmit TRACKING TRACKING/MINED',
      'resubmit TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT',
      'resubmit STUCK STUCK/-',
      'submitFailed TRACKING TRACKING/PENDING',
      'submitFailed TRACKING TRACKING/BROADCAST',
      'submitFailed TRACKING TRACKING/STALE',
      'submitFailed TRACKING TRACKING/MINED',
      'submitFailed TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT',
      'submitFailed STUCK STUCK/-',
      'stale TRACKING TRACKING/STALE',
      'reprice TRACKING TRACKING/PENDING',
      'reprice STUCK TRACKING/PENDING',
      'cancel TRACKING TRACKING/PENDING',
      'cancel STUCK TRACKING/PENDING',
      'replace TRACKING TRACKING/PENDING',
      'replace STUCK TRACKING/PENDING',
      'placeholder TRACKING TRACKING/PENDING',
      'placeholder STUCK TRACKING/PENDING',
      'amend ALLOCATED ALLOCATED/-',
      'decide ALLOCATED ALLOCATED/-',
      'decide TRACKING TRACKING/PENDING',
      'decide TRACKING TRACKING/BROADCAST',
      'decide TRACKING TRACKING/STALE',
      'decide TRACKING TRACKING/MINED',
      'decide TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT',
      'decide STUCK STUCK/-',
      'stick TRACKING STUCK/-',
      'unstick STUCK TRACKING/PENDING',
      'shiftDown ALLOCATED ALLOCATED/-',
      'giveUp ALLOCATED FAILED_FINAL/REJECTED',
      'loseSight TRACKING TRACKING/UNKNOWN_SUBMIT_RESULT',
      'adopt TRACKING TRACKING/BROADCAST',
      'sendAnew TRACKING TRACKING/PENDING',
      'mine TRACKING TRACKING/MINED',
      'mine STUCK TRACKING/MINED',
      'withdraw TRACKING TRACKING/PENDING',
      'confirm TRACKING CONFIRMED/-',
      'revert TRACKING FAILED_FINAL/REVERTED',
      'confirmReplacement TRACKING CONFIRMED/REPLACED',
      'confirmCancel TRACKING FAILED_FINAL/CANCELLED',
      'loseNonce TRACKING FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY',
      'requeue TRACKING ALLOCATED/-',
      'reorg CONFIRMED TRACKING/PENDING',
      'reorg FAILED_FINAL TRACKING/PENDING'
    )
  );
