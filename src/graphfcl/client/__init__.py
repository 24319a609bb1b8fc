"""A client of ``graphfcl serve``. It needs the standard library only."""

from graphfcl.client import answers as answers
from graphfcl.client.client import Client as Client
from graphfcl.client.transport import NoAnswerError as NoAnswerError
from graphfcl.client.transport import ServiceError as ServiceError

__all__ = ["Client", "NoAnswerError", "ServiceError", "answers"]
