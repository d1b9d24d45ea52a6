//! The rules of one place in code, and a step from a frame to that of its caller.
//!
//! Registers have the numbers of DWARF for x86-64 (System V ABI, AMD64 supplement, figure 3.36). A
//! register without a rule keeps its value: compilers write down what they save, and what a function
//! may overwrite is not asked for further out.

use gimli::{
    CfaRule, EhFrame, Encoding, EndianSlice, EvaluationResult, Expression, Format, LittleEndian,
    Register, RegisterRule, UnwindExpression, UnwindTableRow, Value,
};

use crate::records::{REGISTERS, UserState};

type Section<'a> = EhFrame<EndianSlice<'a, LittleEndian>>;

/// The registers of a frame; `None` where a rule says that one is lost.
pub(super) type Registers = [Option<u64>; REGISTERS];

/// The frame pointer, where one is kept, the stack pointer, and where the code goes on.
const FRAME: usize = 6;
const STACK: usize = 7;
pub(super) const RETURN: usize = 16;

/// Operations of an expression that are done at most: those of compilers have a dozen.
const OPERATIONS_MAX: u32 = 256;

/// What the address size and format of an expression are.
const ENCODING: Encoding = Encoding { format: Format::Dwarf32, version: 4, address_size: 8 };

/// How the frame of the caller follows from one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rules {
    /// The address that the others are relative to.
    frame: Frame,
    registers: Box<[(usize, Rule)]>,
    is_signal: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Frame {
    Register(usize, i64),
    Expression(Box<[u8]>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    Lost,
    Same,
    /// Saved so far from the frame's address.
    Saved(i64),
    /// That far from the frame's address.
    Is(i64),
    In(usize),
    SavedAt(Box<[u8]>),
    IsValueOf(Box<[u8]>),
}

/// Why there is no step further out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepError {
    /// This is the outermost frame.
    Outermost,
    /// What is needed lies behind the copy of the stack.
    BeyondCopy,
    /// The rules cannot be followed, or do not fit what is there.
    Unknown,
}

/// The copy of a stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stack<'a> {
    begin: u64,
    octets: &'a [u8],
    /// Whether there is more of it than was copied.
    has_more: bool,
}

impl<'a> Stack<'a> {
    pub(super) fn of(user: &UserState<'a>) -> Self {
        let begin = user.registers.map_or(0, |registers| registers[STACK]);
        Self { begin, octets: user.stack, has_more: user.has_more }
    }

    fn word(&self, address: u64) -> Result<u64, StepError> {
        let into = address.checked_sub(self.begin).ok_or(StepError::Unknown)?;
        let into = usize::try_from(into).map_err(|_| StepError::Unknown)?;
        let word = self.octets.get(into..).and_then(|octets| octets.first_chunk::<8>());
        let missing = if self.has_more { StepError::BeyondCopy } else { StepError::Unknown };
        word.map(|word| u64::from_le_bytes(*word)).ok_or(missing)
    }
}

impl Rules {
    /// The rules of a row; `None` where one of them is not known to this program.
    pub(super) fn of(
        row: &UnwindTableRow<usize>,
        is_signal: bool,
        section: &Section<'_>,
    ) -> Option<Self> {
        let octets = |expression: &UnwindExpression<usize>| {
            let expression: Expression<EndianSlice<'_, LittleEndian>> =
                expression.get(section).ok()?;
            Some(Box::from(expression.0.slice()))
        };
        let frame = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                Frame::Register(number(*register)?, *offset)
            }
            CfaRule::Expression(expression) => Frame::Expression(octets(expression)?),
        };
        let mut registers = Vec::new();
        for (register, rule) in row.registers() {
            // Vector registers and the like are of no use here.
            let Some(register) = number(*register) else { continue };
            let rule = match rule {
                RegisterRule::Undefined => Rule::Lost,
                RegisterRule::SameValue => Rule::Same,
                RegisterRule::Offset(offset) => Rule::Saved(*offset),
                RegisterRule::ValOffset(offset) => Rule::Is(*offset),
                RegisterRule::Register(other) => Rule::In(number(*other)?),
                RegisterRule::Expression(expression) => Rule::SavedAt(octets(expression)?),
                RegisterRule::ValExpression(expression) => Rule::IsValueOf(octets(expression)?),
                _ => return None,
            };
            registers.push((register, rule));
        }
        Some(Self { frame, registers: registers.into(), is_signal })
    }

    /// Whether this is where the kernel lets a handler of a signal return to: who is further out was
    /// interrupted, and called nothing.
    pub(super) fn is_signal(&self) -> bool {
        self.is_signal
    }

    /// Goes from a frame to that of its caller.
    pub(super) fn step(
        &self,
        registers: &mut Registers,
        stack: &Stack<'_>,
    ) -> Result<(), StepError> {
        let frame = match &self.frame {
            Frame::Register(register, offset) => {
                let value = registers[*register].ok_or(StepError::Unknown)?;
                value.checked_add_signed(*offset).ok_or(StepError::Unknown)?
            }
            Frame::Expression(octets) => evaluate(octets, None, registers, stack)?,
        };
        let mut outer = *registers;
        outer[STACK] = Some(frame);
        outer[RETURN] = None;
        for (register, rule) in &self.registers {
            let from_frame =
                |offset: i64| frame.checked_add_signed(offset).ok_or(StepError::Unknown);
            outer[*register] = match rule {
                Rule::Lost => None,
                Rule::Same => registers[*register],
                Rule::Saved(offset) => Some(stack.word(from_frame(*offset)?)?),
                Rule::Is(offset) => Some(from_frame(*offset)?),
                Rule::In(other) => registers[*other],
                Rule::SavedAt(octets) => {
                    Some(stack.word(evaluate(octets, Some(frame), registers, stack)?)?)
                }
                Rule::IsValueOf(octets) => Some(evaluate(octets, Some(frame), registers, stack)?),
            };
        }
        if outer[RETURN].is_none() {
            return Err(StepError::Outermost);
        }
        // A handler of a signal may run on a stack of its own; everybody else's lies below the caller's.
        if !self.is_signal && outer[STACK] <= registers[STACK] {
            return Err(StepError::Unknown);
        }
        *registers = outer;
        Ok(())
    }
}

/// Goes from a frame to that of its caller where the code keeps a frame pointer.
pub(super) fn step_by_frame_pointer(
    registers: &mut Registers,
    stack: &Stack<'_>,
) -> Result<(), StepError> {
    // Whoever begins a thread marks its outermost frame so (System V ABI, AMD64 supplement, 3.4.1).
    if registers[FRAME] == Some(0) {
        return Err(StepError::Outermost);
    }
    let frame = registers[FRAME].filter(|frame| Some(*frame) >= registers[STACK]);
    let frame = frame.ok_or(StepError::Unknown)?;
    let saved = |into: u64| stack.word(frame.checked_add(into).ok_or(StepError::Unknown)?);
    let (outer, caller) = (saved(0)?, saved(8)?);
    registers[FRAME] = Some(outer);
    registers[RETURN] = Some(caller);
    registers[STACK] = frame.checked_add(16);
    Ok(())
}

/// What an expression comes to, which begins with the frame's address where there is one already.
fn evaluate(
    octets: &[u8],
    frame: Option<u64>,
    registers: &Registers,
    stack: &Stack<'_>,
) -> Result<u64, StepError> {
    let unknown = |_| StepError::Unknown;
    let mut evaluation = Expression(EndianSlice::new(octets, LittleEndian)).evaluation(ENCODING);
    evaluation.set_max_iterations(OPERATIONS_MAX);
    if let Some(frame) = frame {
        evaluation.set_initial_value(frame);
    }
    let mut result = evaluation.evaluate().map_err(unknown)?;
    loop {
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                let register = number(register).ok_or(StepError::Unknown)?;
                let value = registers[register].ok_or(StepError::Unknown)?;
                evaluation.resume_with_register(Value::Generic(value)).map_err(unknown)?
            }
            EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                let word = stack.word(address)?;
                evaluation.resume_with_memory(Value::Generic(word)).map_err(unknown)?
            }
            _ => return Err(StepError::Unknown),
        };
    }
    match evaluation.as_result() {
        [piece] => match piece.location {
            gimli::Location::Address { address } => Ok(address),
            _ => Err(StepError::Unknown),
        },
        _ => Err(StepError::Unknown),
    }
}

/// The number of a register that is followed.
fn number(register: Register) -> Option<usize> {
    Some(usize::from(register.0)).filter(|&number| number < REGISTERS)
}
