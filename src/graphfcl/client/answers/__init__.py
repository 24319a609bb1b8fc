"""Response types of the HTTP service. The service describes its routes with them, and the client returns them.

Ids are strings. A class is a string, or an integer if the model has integer classes. ``version`` is the version of the
model that the answer describes. ``next_cursor`` leads to the next page of a list and is None on the last page. A field
with a default may be missing from the JSON.
"""

from graphfcl.client.answers.common import Answer as Answer
from graphfcl.client.answers.common import ClassName as ClassName
from graphfcl.client.answers.common import ClassProbability as ClassProbability
from graphfcl.client.answers.common import ClassShare as ClassShare
from graphfcl.client.answers.common import ExpectedErrors as ExpectedErrors
from graphfcl.client.answers.common import LabelRole as LabelRole
from graphfcl.client.answers.common import LeftOut as LeftOut
from graphfcl.client.answers.common import Recall as Recall
from graphfcl.client.answers.common import Status as Status
from graphfcl.client.answers.labels import Changed as Changed
from graphfcl.client.answers.labels import Claimed as Claimed
from graphfcl.client.answers.labels import Group as Group
from graphfcl.client.answers.labels import Groups as Groups
from graphfcl.client.answers.labels import NodeLabel as NodeLabel
from graphfcl.client.answers.labels import NodeLabels as NodeLabels
from graphfcl.client.answers.labels import Queue as Queue
from graphfcl.client.answers.labels import QueuedNode as QueuedNode
from graphfcl.client.answers.labels import Suggestion as Suggestion
from graphfcl.client.answers.labels import Suggestions as Suggestions
from graphfcl.client.answers.model import Accuracy as Accuracy
from graphfcl.client.answers.model import Classes as Classes
from graphfcl.client.answers.model import Health as Health
from graphfcl.client.answers.model import InferenceAnswer as InferenceAnswer
from graphfcl.client.answers.model import ListedClass as ListedClass
from graphfcl.client.answers.model import ListedVersion as ListedVersion
from graphfcl.client.answers.model import Live as Live
from graphfcl.client.answers.model import Model as Model
from graphfcl.client.answers.model import ModelDescription as ModelDescription
from graphfcl.client.answers.model import OneClass as OneClass
from graphfcl.client.answers.model import Ready as Ready
from graphfcl.client.answers.model import TensorDescription as TensorDescription
from graphfcl.client.answers.model import TensorValues as TensorValues
from graphfcl.client.answers.model import Versions as Versions
from graphfcl.client.answers.nodes import Explanation as Explanation
from graphfcl.client.answers.nodes import Feature as Feature
from graphfcl.client.answers.nodes import ListedNode as ListedNode
from graphfcl.client.answers.nodes import Map as Map
from graphfcl.client.answers.nodes import Neighbour as Neighbour
from graphfcl.client.answers.nodes import Neighbours as Neighbours
from graphfcl.client.answers.nodes import NeighbourShare as NeighbourShare
from graphfcl.client.answers.nodes import Node as Node
from graphfcl.client.answers.nodes import Nodes as Nodes
from graphfcl.client.answers.nodes import Predictions as Predictions
from graphfcl.client.answers.nodes import Spread as Spread
from graphfcl.client.answers.nodes import Statement as Statement
from graphfcl.client.answers.nodes import Word as Word
from graphfcl.client.answers.tasks import Choices as Choices
from graphfcl.client.answers.tasks import LabelStudioTasks as LabelStudioTasks
from graphfcl.client.answers.tasks import Task as Task
from graphfcl.client.answers.tasks import TaskAnnotation as TaskAnnotation
from graphfcl.client.answers.tasks import TaskData as TaskData
from graphfcl.client.answers.tasks import TaskPrediction as TaskPrediction
from graphfcl.client.answers.tasks import TaskResult as TaskResult
from graphfcl.client.answers.teaching import Acceptance as Acceptance
from graphfcl.client.answers.teaching import ClassRecalls as ClassRecalls
from graphfcl.client.answers.teaching import Dispute as Dispute
from graphfcl.client.answers.teaching import Doubt as Doubt
from graphfcl.client.answers.teaching import Effect as Effect
from graphfcl.client.answers.teaching import EffectAccuracy as EffectAccuracy
from graphfcl.client.answers.teaching import LabelIssue as LabelIssue
from graphfcl.client.answers.teaching import LabelIssues as LabelIssues
from graphfcl.client.answers.teaching import Member as Member
from graphfcl.client.answers.teaching import Members as Members
from graphfcl.client.answers.teaching import Move as Move
from graphfcl.client.answers.teaching import MovedNodes as MovedNodes
from graphfcl.client.answers.teaching import Vote as Vote
